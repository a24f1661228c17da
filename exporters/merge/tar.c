// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/merge/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/write_all.h"

#define BLOCK	     512
#define OCTAL_DIGITS 11

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[8], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "as ustar has it");

static int put_zeros(int fd, size_t n)
{
	static const char zeros[2 * BLOCK];
	struct iovec iov = { (void *)(uintptr_t)zeros, n };

	return n ? kx_write_all(fd, &iov, 1) : 0;
}

int kx_tar_begin(struct kx_tar *tar)
{
	tar->header = lseek(tar->fd, 0, SEEK_CUR);
	return tar->header < 0 ? -errno : put_zeros(tar->fd, BLOCK);
}

/* More than 11 octal digits are a number of 96 bits whose first is set (GNU tar, Perfetto). */
static void put_number(char field[12], uint64_t n)
{
	if (n < (uint64_t)1 << 3 * OCTAL_DIGITS) {
		snprintf(field, 12, "%011llo", (unsigned long long)(n & 077777777777));
		return;
	}
	field[0] = (char)0x80;
	for (int i = 11; i > 3; i--, n >>= 8)
		field[i] = (char)n;
}

int kx_tar_end(struct kx_tar *tar, const char *name)
{
	off_t end = lseek(tar->fd, 0, SEEK_CUR);
	struct header h = { .mode = "0000644", .uid = "0000000", .gid = "0000000", .type = '0' };
	uint64_t size = (uint64_t)(end - tar->header - BLOCK);
	unsigned sum = 0;
	ssize_t n;

	if (end < 0)
		return -errno;
	snprintf(h.name, sizeof(h.name), "%s", name);
	put_number(h.size, size);
	put_number(h.mtime, tar->modified);
	memcpy(h.magic,
	       "ustar\0"
	       "00",
	       sizeof(h.magic));
	memset(h.checksum, ' ', sizeof(h.checksum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
	do
		n = pwrite(tar->fd, &h, sizeof(h), tar->header);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(h))
		return n < 0 ? -errno : -EIO;
	return put_zeros(tar->fd, (size_t)(-size % BLOCK));
}

int kx_tar_finish(struct kx_tar *tar)
{
	return put_zeros(tar->fd, 2 * BLOCK);
}
