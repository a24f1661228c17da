// SPDX-License-Identifier: BSD-2-Clause
/*
 * confined SYSCALLS FAMILIES COMMAND...: runs COMMAND as systemd would with SystemCallFilter=, RestrictAddressFamilies=,
 * RestrictNamespaces=yes, MemoryDenyWriteExecute=yes and NoNewPrivileges=yes. SYSCALLS is a file with one name a line, all
 * others fail with EPERM; FAMILIES numbers with commas. Linked with -lseccomp.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE		 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif
#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

static void check(int code, const char *what)
{
	if (!code)
		return;
	fprintf(stderr, "confined: %s: %s\n", what, strerror(code < 0 ? -code : errno));
	exit(125);
}

static void allow_listed(scmp_filter_ctx filter, const char *path)
{
	FILE *f = fopen(path, "re");
	char name[64];

	check(!f, path);
	while (f && fscanf(f, "%63s", name) == 1) {
		int number = seccomp_syscall_resolve_name(name);

		if (number < 0 || !strcmp(name, "clone") || !strcmp(name, "clone3") || !strcmp(name, "socket") ||
		    !strcmp(name, "unshare") || !strcmp(name, "setns"))
			continue; /* of other processors, or below */
		check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0), name);
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (argc < 4 || !filter)
		return 125;
	allow_listed(filter, argv[1]);
	for (char *family = strtok(argv[2], ","); family; family = strtok(NULL, ","))
		check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)atoi(family))),
		      "socket");
	/* systemd does the same: a filter cannot see the flags of clone3, and callers then take clone */
	check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
	check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			       SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES, 0)),
	      "clone");
	/* Linux 6.3; systemd filters mmap and mprotect instead, which refuses a little less */
	(void)prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
	check(seccomp_load(filter), "load");
	execvp(argv[3], argv + 3);
	check(-errno, argv[3]);
}
