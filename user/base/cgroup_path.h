// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the path of a control group tells of a process: its systemd unit, container and Kubernetes
 * pod. No daemon is asked: systemd and the container runtimes name groups by these ids. Known
 * forms, with control groups of version 1 and 2:
 *
 *   systemd      /system.slice/nginx.service, .../user@1000.service/app.slice/app-x.scope
 * (systemd.unit(5); the innermost unit) Docker       /docker/ID, /system.slice/docker-ID.scope
 * (drivers cgroupfs, systemd) containerd   /NAMESPACE/ID, .../nerdctl-ID.scope,
 * .../cri-containerd-ID.scope, SLICE:cri-containerd:ID CRI-O        .../crio-ID.scope[/container]
 *   Podman       .../libpod-ID.scope[/container]
 *   Kubernetes   /kubepods/burstable/podUID/ID, /kubepods.slice/kubepods-burstable-podUID.slice/...
 * ('_' for '-' in UID)
 *
 * An ID has 64 hexadecimal digits. A monitor's own group (crio-conmon-ID.scope,
 * libpod-conmon-ID.scope) is no container.
 */
#ifndef KX_CGROUP_PATH_H
#define KX_CGROUP_PATH_H

#include <stddef.h>

#define KX_CGROUP_SIZE	  4096 /* of a path with NUL that is kept whole */
#define KX_UNIT_SIZE	  256  /* with NUL; systemd's names have at most 255 bytes */
#define KX_CONTAINER_SIZE 65
#define KX_POD_SIZE	  37

/* Each "" if the path does not say. */
struct kx_cgroup {
	char unit[KX_UNIT_SIZE]; /* not a container's own scope */
	char container[KX_CONTAINER_SIZE];
	const char *runtime;   /* "docker", "containerd", "cri-o", "podman"; "": not known */
	char pod[KX_POD_SIZE]; /* uid, with '-'; of a static pod 32 digits */
};

/* @path may be any text. */
void kx_cgroup_parse_path(const char *path, struct kx_cgroup *out);

/*
 * Parses the text of /proc/PID/cgroup, lines "ID:CONTROLLERS:PATH" (cgroups(7)). Of several
 * hierarchies (version 1) the one counts that tells most, the first of equals; systemd's own
 * ("name=systemd") and version 2 ("0::") before others. @path, of
 * @size bytes, becomes its path, cut if it is too long; "" if there is none. @text may be anything.
 */
void kx_cgroup_parse(const char *text, char *path, size_t size, struct kx_cgroup *out);

#endif
