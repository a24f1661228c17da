// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/filters.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cgroup_mount.h"

static bool take_number(const char **text, unsigned long max, unsigned long *out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*out = strtoul(*text, &end, 10);
	*text = end;
	return !errno && *out <= max;
}

/* "0,2-3" as the kernel writes it too. */
static bool parse_cpus(const char *list, uint64_t cpus[KX_FILTER_MAX_CPUS / 64])
{
	unsigned long first, last;

	memset(cpus, 0, KX_FILTER_MAX_CPUS / 8);
	for (;; list++) {
		if (!take_number(&list, KX_FILTER_MAX_CPUS - 1, &first))
			return false;
		last = first;
		if (*list == '-') {
			list++;
			if (!take_number(&list, KX_FILTER_MAX_CPUS - 1, &last) || last < first)
				return false;
		}
		for (; first <= last; first++)
			cpus[first / 64] |= 1ULL << (first % 64);
		if (*list != ',')
			return !*list;
	}
}

int kx_filters_add_cpus(struct kx_filters *f, const char *list, const char *online,
			struct kx_err *err)
{
	uint64_t here[KX_FILTER_MAX_CPUS / 64];
	char line[4096] = "";
	FILE *file;

	if (!parse_cpus(list, f->cpus))
		return kx_err_set(err, -EINVAL,
				  "--cpu takes CPUs and ranges of them, as in 0,2-3, not '%s'", list);
	file = fopen(online, "re");
	if (!file)
		return kx_err_set(err, -errno, "cannot read which CPUs are online (%s): %s", online,
				  strerror(errno));
	if (fgets(line, sizeof(line), file))
		line[strcspn(line, "\n")] = 0;
	fclose(file);
	if (!parse_cpus(line, here))
		return kx_err_set(err, -EPROTO, "%s does not list CPUs: '%s'", online, line);
	for (unsigned cpu = 0; cpu < KX_FILTER_MAX_CPUS; cpu++)
		if (f->cpus[cpu / 64] & ~here[cpu / 64] & 1ULL << (cpu % 64))
			return kx_err_set(err, -ENODEV, "--cpu %s: CPU %u is not online; online are %s",
					  list, cpu, line);
	return 0;
}

static int add_uid(struct kx_filters *f, const char *text, struct kx_err *err)
{
	const char *p = text;
	const struct passwd *user;
	unsigned long uid;

	if (take_number(&p, UINT32_MAX - 1UL, &uid) && !*p) {
		f->uid = (uint32_t)uid;
		return 0;
	}
	if (!*text || isdigit((unsigned char)*text) || *text == '-')
		return kx_err_set(err, -EINVAL, "--uid takes a user's number or name, not '%s'", text);
	errno = 0;
	user = getpwnam(text);
	if (!user)
		return kx_err_set(err, -ENOENT, "there is no user '%s' here (--uid)%s%s", text,
				  errno ? ": " : "", errno ? strerror(errno) : "");
	f->uid = user->pw_uid;
	return 0;
}

/* Where the cgroup v2 hierarchy is mounted. */
static int find_mount(const char *mountinfo, char mount[PATH_MAX], struct kx_err *err)
{
	const int code = kx_cgroup_mount(mountinfo, NULL, mount);

	if (code == -ENODEV)
		return kx_err_set(err, -ENOENT,
				  "cgroup v2 is not mounted here, so --cgroup cannot be used; mount it "
				  "with: mount -t cgroup2 none /sys/fs/cgroup");
	return code ? kx_err_set(err, code, "cannot read which file systems are mounted (%s): %s", mountinfo, strerror(-code)) : 0;
}

int kx_filters_add_cgroup(struct kx_filters *f, const char *path, const char *mountinfo,
			  struct kx_err *err)
{
	char mount[PATH_MAX], below[2 * PATH_MAX];
	struct statfs fs;
	struct stat st;
	int code;

	if (!*path)
		return kx_err_set(err, -EINVAL, "--cgroup takes the path of a control group");
	code = find_mount(mountinfo, mount, err);
	if (code)
		return code;
	/* also the names that /proc/PID/cgroup has, which begin with a slash too */
	snprintf(below, sizeof(below), "%s/%s", mount, path);
	if (*path != '/' || stat(path, &st) || statfs(path, &fs) ||
	    fs.f_type != CGROUP2_SUPER_MAGIC) {
		if (!stat(below, &st) && !statfs(below, &fs))
			path = below;
		else if (*path == '/' && !stat(path, &st))
			return kx_err_set(err, -ENOTDIR,
					  "%s is no control group of version 2; those are folders "
					  "below %s",
					  path, mount);
		else
			return kx_err_set(err, -ENOENT,
					  "there is no control group '%s' (%s); 'cat /proc/PID/cgroup' "
					  "shows in which one a process is",
					  path, *path == '/' ? mount : below);
	}
	if (!S_ISDIR(st.st_mode) || fs.f_type != CGROUP2_SUPER_MAGIC)
		return kx_err_set(err, -ENOTDIR, "%s is no control group but a file in one", path);
	f->cgroup = st.st_ino;
	if (strlen(mount) < sizeof(f->cgroup_mount))
		strcpy(f->cgroup_mount, mount);
	return 0;
}

int kx_filters_add(struct kx_filters *f, uint32_t kind, const char *text, struct kx_err *err)
{
	if (f->which & kind)
		return kx_err_set(err, -EINVAL, "%s is given twice",
				  kind == KX_FILTER_CPU	     ? "--cpu" :
				  kind == KX_FILTER_UID	     ? "--uid" :
				  kind == KX_FILTER_CGROUP   ? "--cgroup" :
							       "--comm");
	f->which |= kind;
	switch (kind) {
	case KX_FILTER_CPU:
		return kx_filters_add_cpus(f, text, "/sys/devices/system/cpu/online", err);
	case KX_FILTER_UID:
		return add_uid(f, text, err);
	case KX_FILTER_CGROUP:
		return kx_filters_add_cgroup(f, text, "/proc/self/mountinfo", err);
	default:
		return kx_comm_glob_compile(text, &f->comm, err);
	}
}
