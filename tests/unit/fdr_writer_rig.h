// SPDX-License-Identifier: BSD-2-Clause
/* A writer with its output file, read back. Include it after cmocka's headers. */
#ifndef KX_TEST_FDR_WRITER_RIG_H
#define KX_TEST_FDR_WRITER_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/fdr.h"
#include "trace/fdr_writer.h"
#include "fast_size.h"
#include "folder.h"
#include "llvm_xray.h"

#define T0 1000000ULL
#define HZ 1000000000ULL

static inline struct kx_fdr_options defaults(int version)
{
	return (struct kx_fdr_options){
		.version = version,
		.tsc_hz = HZ,
		.constant_tsc = true,
		.nonstop_tsc = true,
		.start_tsc = T0,
		.wall_sec = 5,
		.wall_usec = 7,
	};
}

struct file {
	char path[128];
	int fd;
	struct kx_fdr_writer *w;
};

static inline void start_with(struct file *f, const struct kx_fdr_options *o)
{
	struct kx_err err = { 0 };

	snprintf(f->path, sizeof(f->path), "%s/trace", folder);
	f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	assert_true(f->fd >= 0);
	if (kx_fdr_writer_new(f->fd, o, &f->w, &err) != 0)
		fail_msg("%s", err.text);
}

static inline void start(struct file *f, int version, uint32_t buffer_size)
{
	struct kx_fdr_options o = defaults(version);

	o.buffer_size = buffer_size;
	start_with(f, &o);
}

static inline void end(struct file *f)
{
	struct kx_err err = { 0 };

	if (kx_fdr_finish(f->w, 0, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(kx_fdr_writer_bytes(f->w), lseek(f->fd, 0, SEEK_END));
	kx_fdr_writer_free(f->w);
	close(f->fd);
}

static inline uint8_t *read_back(const struct file *f, size_t *size)
{
	struct stat st;
	uint8_t *data;
	int fd = open(f->path, O_RDONLY);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*size = (size_t)st.st_size;
	data = malloc(*size + 1);
	assert_non_null(data);
	assert_int_equal(read(fd, data, *size), *size);
	close(fd);
	return data;
}

#endif
