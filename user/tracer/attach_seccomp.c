// SPDX-License-Identifier: BSD-2-Clause
/* Return probes and seccomp: whether this kernel lets a filter kill the traced program. */
#include "tracer/uprobe_link.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/attach_self.h"

bool kx_process_has_seccomp(pid_t pid)
{
	char path[64], line[128];
	int mode = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	fclose(f);
	return mode != SECCOMP_MODE_DISABLED;
}

/* Strict mode allows read, write, _exit and sigreturn: anything else the kernel adds is fatal. */
static void run_child(int go_fd)
{
	char go;

	if (read(go_fd, &go, 1) != 1 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		syscall(SYS_exit, 1);
	/* several times: the kernel optimizes a probe only after its first hits */
	for (int i = 0; i < 4; i++)
		kx_self_hit();
	syscall(SYS_exit, 0);
}

bool kx_returns_survive_seccomp(void)
{
	static int known = -1;
	struct kx_links links = { 0 };
	int go[2], status = -1, err = -1;
	pid_t pid;

	if (known >= 0)
		return known;
	if (pipe2(go, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		close(go[1]);
		run_child(go[0]);
	}
	close(go[0]);
	if (pid > 0) {
		err = kx_self_attach(KX_MECHANISM_SESSION, pid, true, &links);
		if (err)
			err = kx_self_attach(KX_MECHANISM_MULTI, pid, true, &links);
		if (err)
			err = kx_self_attach(KX_MECHANISM_SINGLE, pid, true, &links);
		if (write(go[1], "", 1) != 1)
			err = -1;
	}
	close(go[1]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	kx_links_close(&links);
	known = !err && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return known;
}
