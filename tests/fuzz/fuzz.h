// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the fuzz targets; each defines LLVMFuzzerTestOneInput. */
#ifndef KX_TEST_FUZZ_H
#define KX_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Puts the input into a file with a name, for readers that take one; close the descriptor. */
static inline int fuzz_file(const uint8_t *data, size_t size, char *path, size_t path_size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, path_size, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
