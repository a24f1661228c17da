// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_naive.h"

#include <errno.h>

#include "trace/fdr_segments.h"

#define TOUCH_STEP (1u << 20) /* bytes of the file between two calls of kx_fdr_touch */

/*
 * A basic mode record at @offset (a whole one). @before is the function record that an argument
 * record must belong to, NULL if there is none. Returns 0 or -EBADMSG.
 */
static int check_record(const struct kx_fdr_file *f, uint64_t offset, const uint8_t *before,
			struct kx_err *err)
{
	const uint8_t *p = f->data + offset;
	unsigned long long at = offset;

	if (kx_get16(p) > 1 || (!kx_get16(p) && p[3] > 3))
		return kx_err_set(err, -EBADMSG,
				  "%s: is damaged at offset %llu: unknown basic "
				  "mode record type %u, %u",
				  f->name, at, kx_get16(p), p[3]);
	if (!kx_get16(p))
		return 0;
	if (!before || kx_get32(before + 4) != kx_get32(p + 4) ||
	    kx_get32(before + 16) != kx_get32(p + 8) ||
	    (f->info.version >= 3 && kx_get32(before + 20) != kx_get32(p + 12)))
		return kx_err_set(err, -EBADMSG,
				  "%s: is damaged at offset %llu: an argument "
				  "record follows no record of the same function and thread",
				  f->name, at);
	return 0;
}

int kx_fdr_index_naive(struct kx_fdr_file *f, struct kx_err *err)
{
	const uint8_t *before = NULL;
	uint64_t pos = KX_FDR_HEADER_SIZE;
	int32_t last_pid = 0, last_tid = 0;

	for (; f->info.file_size - pos >= KX_FDR_NAIVE_SIZE; pos += KX_FDR_NAIVE_SIZE) {
		const uint8_t *p = f->data + pos;
		int r = check_record(f, pos, before, err);
		int32_t pid, tid;

		if (!(pos % TOUCH_STEP))
			kx_fdr_touch(f, pos, pos + TOUCH_STEP);
		f->naive_end = pos;
		if (r)
			return r;
		if (kx_get16(p))
			continue;
		before = p;
		tid = (int32_t)kx_get32(p + 16);
		pid = f->info.version >= 3 ? (int32_t)kx_get32(p + 20) : 0;
		if (!f->info.start_tsc || kx_get64(p + 8) < f->info.start_tsc)
			f->info.start_tsc = kx_get64(p + 8);
		if (f->nthreads && pid == last_pid && tid == last_tid)
			continue;
		last_pid = pid;
		last_tid = tid;
		if (kx_fdr_intern_thread(f, pid, tid) < 0)
			return kx_err_set(err, -ENOMEM, "%s: out of memory for its threads",
					  f->name);
	}
	f->naive_end = pos;
	f->info.truncated = pos != f->info.file_size || pos == KX_FDR_HEADER_SIZE;
	f->info.truncated_at = f->info.truncated ? pos : 0;
	return 0;
}
