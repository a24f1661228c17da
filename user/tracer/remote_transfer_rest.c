// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_transfer_rest.h"

#include <limits.h>
#include <linux/aio_abi.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define BATCH 64 /* buffers that are read at once */

/* Where a call's buffers are listed. */
struct list {
	uint64_t at;
	size_t n;
};

static bool read_memory(pid_t tid, uint64_t at, void *to, size_t size)
{
	const struct iovec local = { to, size }, remote = { (void *)at, size };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static bool find_list(pid_t tid, const struct user_regs_struct *regs, struct list *out)
{
	struct msghdr message;

	switch ((long)regs->orig_rax) {
	case SYS_writev:
		*out = (struct list){ regs->rsi, (unsigned)regs->rdx };
		break;
	case SYS_sendmsg:
	case SYS_recvmsg:
		if (!read_memory(tid, regs->rsi, &message, sizeof(message)))
			return false;
		*out = (struct list){ (uint64_t)message.msg_iov, message.msg_iovlen };
		break;
	default:
		return false;
	}
	return out->n <= IOV_MAX;
}

/* The part behind the first @moved bytes of the buffer that has the next one; false: there is none. *@size: bytes of all buffers up to that one's end. */
static bool find_buffer(pid_t tid, const struct list *l, uint64_t moved, struct iovec *out, uint64_t *size)
{
	struct iovec some[BATCH];

	*size = 0;
	for (size_t done = 0, n; done < l->n; done += n) {
		n = l->n - done < BATCH ? l->n - done : BATCH;
		if (!read_memory(tid, l->at + done * sizeof(*some), some, n * sizeof(*some)))
			return false;
		for (size_t i = 0; i < n; i++) {
			const uint64_t before = *size;

			*size += some[i].iov_len;
			if (moved >= *size)
				continue;
			*out = (struct iovec){ (char *)some[i].iov_base + (moved - before), *size - moved };
			return true;
		}
	}
	return false;
}

uint64_t kx_transfer_size(pid_t tid, const struct user_regs_struct *regs)
{
	struct iovec buffer;
	uint64_t size = 0;
	struct list list;

	switch ((long)regs->orig_rax) {
	case SYS_read:
	case SYS_write:
	case SYS_sendto:
	case SYS_recvfrom:
		return regs->rdx;
	case SYS_sendfile:
		return regs->r10;
	case SYS_copy_file_range:
		return regs->r8;
	case SYS_getrandom:
		return regs->rsi;
	}
	if (find_list(tid, regs, &list))
		find_buffer(tid, &list, UINT64_MAX, &buffer, &size);
	return size;
}

/* The call for one buffer of those that the call in @r has a list of. */
static void set_buffer(struct user_regs_struct *r, const struct iovec *buffer)
{
	if (r->orig_rax == SYS_writev) {
		r->orig_rax = SYS_write;
	} else {
		r->orig_rax = r->orig_rax == SYS_sendmsg ? SYS_sendto : SYS_recvfrom;
		r->r10 = r->rdx; /* flags */
		r->r8 = r->r9 = 0;
	}
	r->rsi = (uint64_t)buffer->iov_base;
	r->rdx = buffer->iov_len;
}

bool kx_transfer_rest(pid_t tid, const struct user_regs_struct *regs, uint64_t moved, uint64_t size, struct user_regs_struct *rest)
{
	struct iovec buffer;
	struct list list;
	uint64_t end;

	*rest = *regs;
	switch ((long)regs->orig_rax) {
	case SYS_io_getevents: /* at least rsi and at most rdx of them */
		rest->rsi -= moved;
		rest->rdx -= moved;
		rest->r10 += moved * sizeof(struct io_event);
		return moved < regs->rsi;
	case SYS_read:
	case SYS_write:
	case SYS_sendto:
	case SYS_recvfrom:
		rest->rsi += moved;
		rest->rdx = size - moved;
		return moved < size;
	case SYS_sendfile: /* the kernel has moved the offset */
		rest->r10 -= moved;
		return moved < size;
	case SYS_copy_file_range: /* both offsets */
		rest->r8 -= moved;
		return moved < size;
	case SYS_getrandom:
		rest->rdi += moved;
		rest->rsi -= moved;
		return moved < size;
	}
	if (!find_list(tid, regs, &list) || !find_buffer(tid, &list, moved, &buffer, &end))
		return false;
	set_buffer(rest, &buffer);
	return true;
}
