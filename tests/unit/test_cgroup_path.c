// SPDX-License-Identifier: BSD-2-Clause
/* Unit, container and pod from paths as systemd and the runtimes make them, and from hostile ones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup_path.h"
#include "fast_size.h"

#define ID	   "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define POD	   "2f1a0c44-9e55-4b21-8d14-0c5b4a9d7e10"
#define POD_	   "2f1a0c44_9e55_4b21_8d14_0c5b4a9d7e10"
#define STATIC_POD "5f2c1a7b9e0d4c3b8a7f6e5d4c3b2a19"

static const struct {
	const char *path, *unit, *runtime, *container, *pod;
} paths[] = {
	{ "/", "", "", "", "" },
	{ "", "", "", "", "" },
	{ "/init.scope", "init.scope", "", "", "" },
	{ "/system.slice/nginx.service", "nginx.service", "", "", "" },
	{ "/system.slice/system-postgresql.slice/postgresql@15-main.service",
	  "postgresql@15-main.service", "", "", "" },
	{ "/system.slice/dev-disk\\x2dby.service", "dev-disk\\x2dby.service", "", "", "" },
	{ "/user.slice/user-1000.slice/session-3.scope", "session-3.scope", "", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor-77.scope",
	  "app-editor-77.scope", "", "", "" },
	{ "/system.slice", "", "", "", "" },
	/* Docker: cgroupfs, systemd, a service inside a container */
	{ "/docker/" ID, "", "docker", ID, "" },
	{ "/system.slice/docker-" ID ".scope", "", "docker", ID, "" },
	{ "/docker/" ID "/system.slice/cron.service", "cron.service", "docker", ID, "" },
	{ "/system.slice/docker-" ID ".scope/init.scope", "init.scope", "docker", ID, "" },
	{ "/system.slice/docker.service", "docker.service", "", "", "" },
	/* containerd alone */
	{ "/default/" ID, "", "", ID, "" },
	{ "/system.slice/nerdctl-" ID ".scope", "", "containerd", ID, "" },
	/* Podman: root, rootless, its monitor */
	{ "/machine.slice/libpod-" ID ".scope/container", "", "podman", ID, "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "",
	  "podman", ID, "" },
	{ "/libpod_parent/libpod-" ID, "", "podman", ID, "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", "", "", "" },
	/* Kubernetes with drivers systemd and cgroupfs, each class of service, and a static pod */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
	  ".slice/cri-containerd-" ID ".scope",
	  "", "containerd", ID, POD },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/crio-" ID
	  ".scope/container",
	  "", "cri-o", ID, POD },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/docker-" ID ".scope", "", "docker", ID, POD },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" ID ".scope", "", "", "", POD },
	{ "/kubepods/burstable/pod" POD "/" ID, "", "", ID, POD },
	{ "/kubepods/pod" POD "/" ID, "", "", ID, POD },
	{ "/kubepods/besteffort/pod" STATIC_POD "/" ID, "", "", ID, STATIC_POD },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" POD_
	  ".slice:cri-containerd:" ID,
	  "", "containerd", ID, POD },
	{ "/../../kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID ".scope", "",
	  "containerd", ID, POD },
	/* kind: a node that is a container itself; the inner one counts */
	{ "/docker/ffff" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_
	  ".slice/cri-containerd-" ID ".scope",
	  "", "containerd", ID, POD },
	/* almost */
	{ "/docker/" ID "0", "", "", "", "" },
	{ "/docker/9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08", "", "", "",
	  "" },
	{ "/kubepods/pod2f1a0c44-9e55-4b21-8d14-0c5b4a9d7e1", "", "", "", "" },
	{ "/kubepods/pod2f1a0c44x9e55-4b21-8d14-0c5b4a9d7e10", "", "", "", "" },
	{ "/tripod" POD, "", "", "", "" },
	{ "/.service", "", "", "", "" },
};

static void test_paths(void **state)
{
	struct kx_cgroup g;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		kx_cgroup_parse_path(paths[i].path, &g);
		if (strcmp(g.unit, paths[i].unit) || strcmp(g.runtime, paths[i].runtime) ||
		    strcmp(g.container, paths[i].container) || strcmp(g.pod, paths[i].pod))
			fail_msg("%s: unit '%s', %s container '%s', pod '%s'", paths[i].path,
				 g.unit, g.runtime, g.container, g.pod);
	}
}

static void test_hierarchies(void **state)
{
	static const struct {
		const char *text, *path, *unit, *container;
	} files[] = {
		{ "", "", "", "" },
		{ "no line of this kind\n:\n", "", "", "" },
		{ "0::/system.slice/a.service\n", "/system.slice/a.service", "a.service", "" },
		{ "0::/x:y/a.service", "/x:y/a.service", "a.service", "" },
		/* version 1 */
		{ "12:memory:/system.slice/a.service\n11:cpu,cpuacct:/\n1:name=systemd:/"
		  "system.slice/a.service\n0::/\n",
		  "/system.slice/a.service", "a.service", "" },
		{ "4:pids:/docker/" ID "\n3:cpuset:/\n1:name=systemd:/docker/" ID "\n",
		  "/docker/" ID, "", ID },
		/* both: systemd's hierarchy is of version 2, the runtime's groups are in version 1
		 */
		{ "5:memory:/docker/" ID "\n0::/system.slice/containerd.service\n", "/docker/" ID,
		  "", ID },
	};
	struct kx_cgroup g;
	char path[300];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		kx_cgroup_parse(files[i].text, path, sizeof(path), &g);
		assert_string_equal(path, files[i].path);
		assert_string_equal(g.unit, files[i].unit);
		assert_string_equal(g.container, files[i].container);
	}
	/* cut, and whole again */
	kx_cgroup_parse(files[2].text, path, 8, &g);
	assert_string_equal(path, "/system");
	assert_string_equal(g.unit, "a.service");
}

/* Pieces of real paths in any order and number: what is found has the form that it must have. */
static const char *const pieces[] = {
	"/", ":", "\n", "0::", "pod", "-pod", POD, POD_, ID, "docker-", "cri-containerd-", "crio-", "libpod-", ".scope",
	".service", ".slice", "kubepods", "\xff\xfe", "a", "%s%n", "..", "docker/", "1:name=systemd:", STATIC_POD, "conmon-",
};

static void test_hostile(void **state)
{
	char text[8192], path[64];
	struct kx_cgroup g;
	size_t containers = 0, pods = 0, units = 0;

	(void)state;
	srandom(13);
	for (int i = 0; i < fast_size(200000, 20000); i++) {
		size_t n = (size_t)random() % 100, used = 0;

		text[0] = 0;
		for (size_t k = 0; k < n; k++)
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s",
				random() % 3 ? pieces[(size_t)random() %
						      (sizeof(pieces) / sizeof(pieces[0]))]
					     : "/");
		kx_cgroup_parse_path(text, &g);
		containers += !!g.container[0];
		pods += !!g.pod[0];
		units += !!g.unit[0];
		kx_cgroup_parse(text, path, sizeof(path), &g);
		assert_true(strlen(g.container) == 0 ||
			    strspn(g.container, "0123456789abcdef") == 64);
		assert_true(strlen(g.pod) == 0 || strlen(g.pod) == 36 || strlen(g.pod) == 32);
		assert_true(strlen(g.unit) < sizeof(g.unit) && !strpbrk(g.unit, "/\n"));
	}
	assert_true(containers > 100 && pods > 100 && units > 100);
	/* long ones */
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text + sizeof(text) - 1 - 8, ".service", 9);
	kx_cgroup_parse_path(text, &g);
	assert_string_equal(g.unit, "");
	kx_cgroup_parse(text, path, sizeof(path), &g);
	assert_string_equal(path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_hierarchies),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
