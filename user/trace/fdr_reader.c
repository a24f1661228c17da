// SPDX-License-Identifier: BSD-2-Clause
/* Opening and closing a trace: its header is read here, its buffers by the index. */
#include <errno.h>
#include <stdlib.h>

#include "trace/fdr_index.h"
#include "trace/fdr_naive.h"
#include "trace/fdr_segments.h"

static uint16_t swap16(uint16_t v)
{
	return (uint16_t)(v << 8 | v >> 8);
}

static bool known(uint16_t version, uint16_t type)
{
	if (type == KX_FDR_TYPE_NAIVE)
		return version >= 1 && version <= 3;
	return type == KX_FDR_TYPE_FDR && version >= KX_FDR_MIN_VERSION &&
	       version <= KX_FDR_MAX_VERSION;
}

static int read_header(struct kx_fdr_file *f, struct kx_err *err)
{
	struct kx_fdr_info *info = &f->info;
	uint16_t version, type;
	uint32_t bits;

	if (info->file_size < KX_FDR_HEADER_SIZE)
		return kx_err_set(err, -EBADMSG,
				  "%s: is not an XRay trace: it has %llu bytes, less "
				  "than the 32 of the header",
				  f->name, (unsigned long long)info->file_size);
	version = kx_get16(f->data);
	type = kx_get16(f->data + 2);
	if (known(swap16(version), swap16(type)) && !known(version, type))
		return kx_err_set(err, -EBADMSG,
				  "%s: is a big-endian trace (version %u, type %u); "
				  "only little-endian traces can be read",
				  f->name, swap16(version), swap16(type));
	if (type == KX_FDR_TYPE_FDR && !known(version, type) && version < 256)
		return kx_err_set(err, -EBADMSG,
				  "%s: is an FDR trace of unknown version %u (at "
				  "offset 0); versions 1 to 5 can be read",
				  f->name, version);
	if (type == KX_FDR_TYPE_NAIVE && !known(version, type) && version && version < 256)
		return kx_err_set(err, -EBADMSG,
				  "%s: is a basic mode trace of unknown version %u "
				  "(at offset 0); versions 1 to 3 can be read",
				  f->name, version);
	if (!known(version, type))
		return kx_err_set(err, -EBADMSG,
				  "%s: is not an XRay trace: bytes 0 to 3 should hold a "
				  "version from 1 to 5 and type 1 (FDR) or 0 (basic mode), not %u "
				  "and %u",
				  f->name, version, type);
	info->version = version;
	info->type = type;
	bits = kx_get32(f->data + 4);
	info->constant_tsc = bits & 1;
	info->nonstop_tsc = bits & 2;
	info->tsc_hz = kx_get64(f->data + 8);
	info->buffer_size = kx_get64(f->data + 16);
	return 0;
}

/* The records end where a compressed file is damaged, or ends inside a frame. */
static int end_of_packed(struct kx_fdr_file *f, struct kx_err *err)
{
	if (f->cut && !f->info.truncated) {
		f->info.truncated = true;
		f->info.truncated_at = f->info.file_size;
	}
	if (f->packing_damaged)
		*err = f->damage;
	return f->packing_damaged ? -EBADMSG : 0;
}

static int read_file(struct kx_fdr_file *f, const char *path, bool keep_damaged, struct kx_err *err)
{
	struct kx_err problem = { 0 };
	int r = kx_fdr_map(f, path, err);

	if (!r)
		r = read_header(f, err);
	if (r)
		return r;
	if (f->info.type == KX_FDR_TYPE_NAIVE)
		r = kx_fdr_index_naive(f, &problem);
	else
		r = kx_fdr_index(f, &problem);
	if (!r)
		r = end_of_packed(f, &problem);
	if (r == -EBADMSG && keep_damaged) {
		f->info.damaged = true;
		f->damage = problem;
		return 0;
	}
	if (r && err)
		*err = problem;
	return r;
}

static int open_file(const char *path, bool keep_damaged, struct kx_fdr_file **out,
		     struct kx_err *err)
{
	struct kx_fdr_file *f = calloc(1, sizeof(*f));
	int r;

	if (f)
		f->name = strdup(strcmp(path, "-") ? path : "standard input");
	if (!f || !f->name) {
		free(f);
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	}
	r = read_file(f, path, keep_damaged, err);
	if (r) {
		kx_fdr_close(f);
		return r;
	}
	*out = f;
	return 0;
}

int kx_fdr_open(const char *path, struct kx_fdr_file **out, struct kx_err *err)
{
	return open_file(path, false, out, err);
}

int kx_fdr_open_damaged(const char *path, struct kx_fdr_file **out, struct kx_err *err)
{
	return open_file(path, true, out, err);
}

void kx_fdr_close(struct kx_fdr_file *f)
{
	if (!f)
		return;
	kx_fdr_unmap(f);
	kx_fdr_segments_free(f);
	free(f->name);
	free(f);
}

const struct kx_fdr_info *kx_fdr_get_info(const struct kx_fdr_file *f)
{
	return &f->info;
}

size_t kx_fdr_nthreads(const struct kx_fdr_file *f)
{
	return f->nthreads;
}

void kx_fdr_thread_ids(const struct kx_fdr_file *f, size_t thread, int32_t *pid, int32_t *tid)
{
	*pid = f->threads[thread].pid;
	*tid = f->threads[thread].tid;
}
