// SPDX-License-Identifier: BSD-2-Clause
/* What this user may do: capabilities, and the settings that loosen or tighten them. */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"

/* Newer than some headers: 5.8 and 5.9. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

static const struct kx_doctor_cap known_caps[KX_DOCTOR_CAPS] = {
	{ "CAP_BPF", "loads BPF programs and makes their maps", CAP_BPF, true, false, false },
	{ "CAP_PERFMON", "lets them trace, and opens perf events", CAP_PERFMON, true, false, false },
	{ "CAP_SYS_PTRACE", "traces processes of other users", CAP_SYS_PTRACE, false, false, false },
	{ "CAP_CHECKPOINT_RESTORE",
	  "opens binaries that are deleted or in another mount namespace (/proc/PID/map_files)",
	  CAP_CHECKPOINT_RESTORE, false, false, false },
	{ "CAP_SYS_RESOURCE",
	  "raises the limit of open files, of which single uprobes take two each",
	  CAP_SYS_RESOURCE, false, false, false },
	{ "CAP_SYS_ADMIN",
	  "makes single uprobes; stands for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE",
	  CAP_SYS_ADMIN, false, false, false },
};

static const struct kx_doctor_setting known_settings[KX_DOCTOR_SETTINGS] = {
	{ "perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid", "" },
	{ "kptr_restrict", "/proc/sys/kernel/kptr_restrict", "" },
	{ "unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled", "" },
	{ "yama_ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", "" },
	{ "lockdown", "/sys/kernel/security/lockdown", "" },
};

/* CAP_SYS_ADMIN suffices where the kernel asks bpf_capable, perfmon_capable or the like. */
static bool sys_admin_does(int cap)
{
	return cap == CAP_BPF || cap == CAP_PERFMON || cap == CAP_CHECKPOINT_RESTORE;
}

static void read_setting(struct kx_doctor_setting *s)
{
	FILE *f = fopen(s->path, "re");

	if (!f)
		return;
	if (!fgets(s->value, sizeof(s->value), f))
		s->value[0] = 0;
	s->value[strcspn(s->value, "\n")] = 0;
	fclose(f);
}

/* The initial user namespace maps every id to itself: "0 0 4294967295". */
static bool in_user_namespace(void)
{
	unsigned long inside = 0, outside = 0, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");
	int n;

	if (!f)
		return false;
	n = fscanf(f, "%lu %lu %lu", &inside, &outside, &count);
	fclose(f);
	return n != 3 || inside != 0 || outside != 0 || count != 4294967295UL;
}

int kx_doctor_get_user(struct kx_doctor_user *u, struct kx_err *err)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t effective = 0;
	int seccomp = 0;
	bool found = false;
	char line[256];

	if (!f)
		return kx_err_set(err, -errno, "/proc/self/status cannot be read: %s; is /proc mounted?",
				  strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		found |= sscanf(line, "CapEff: %" SCNx64, &effective) == 1;
		sscanf(line, "Seccomp: %d", &seccomp);
	}
	fclose(f);
	if (!found)
		return kx_err_set(err, -EIO, "/proc/self/status does not list the capabilities");
	u->uid = geteuid();
	u->seccomp = seccomp != 0;
	u->in_user_namespace = in_user_namespace();
	memcpy(u->caps, known_caps, sizeof(u->caps));
	for (int i = 0; i < KX_DOCTOR_CAPS; i++) {
		struct kx_doctor_cap *c = &u->caps[i];

		c->held = effective >> c->number & 1;
		c->covered = !c->held && sys_admin_does(c->number) &&
			     effective >> CAP_SYS_ADMIN & 1;
	}
	memcpy(u->settings, known_settings, sizeof(u->settings));
	for (int i = 0; i < KX_DOCTOR_SETTINGS; i++)
		read_setting(&u->settings[i]);
	return 0;
}
