// SPDX-License-Identifier: BSD-2-Clause
/* Checks an existing AFPerf file before a run is appended to it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporters/afperf/file.h"

#define FIELDS 6      /* of a record that are read, its type included */
#define FIELD_SIZE 48 /* bytes of them that are kept, the final NUL included */
#define MAX_USED (1ull << 62)
#define HEADER_START "# AFPerf v"

struct scan {
	FILE *f;
	const char *path;
	uint64_t at, start; /* offsets: next byte, this record */
	char fields[FIELDS][FIELD_SIZE];
	unsigned nfields;
	uint32_t last3;     /* the last three bytes, for the byte order mark */
	uint64_t mark;      /* offset + 1 of the first one */
	int last;           /* last byte, EOF before the first */
	struct kx_err *err;
};

static int bad(struct scan *s, uint64_t at, const char *why)
{
	return kx_err_set(s->err, -EBADMSG,
			  "%s cannot be appended to: %s at offset %" PRIu64
			  "; leave out --append to replace it", s->path, why, at);
}

static int next(struct scan *s)
{
	int ch = getc_unlocked(s->f);

	if (ch == EOF)
		return EOF;
	s->at++;
	s->last = ch;
	s->last3 = (s->last3 << 8 | (uint32_t)ch) & 0xffffff;
	if (s->last3 == 0xefbbbf && !s->mark)
		s->mark = s->at - 2;
	return ch;
}

static void keep(struct scan *s, size_t *used, int ch)
{
	if (s->nfields <= FIELDS && *used < FIELD_SIZE - 1)
		s->fields[s->nfields - 1][(*used)++] = (char)ch;
}

static void begin_field(struct scan *s, size_t *used)
{
	*used = 0;
	s->nfields++;
	if (s->nfields <= FIELDS)
		memset(s->fields[s->nfields - 1], 0, FIELD_SIZE);
}

/* A comment to the end of its line, with the '#' already read; it may be another header. */
static int comment(struct scan *s)
{
	char text[32] = "#";
	size_t used = 1;
	int ch;

	while ((ch = next(s)) != EOF && ch != '\n')
		if (used < sizeof(text) - 1)
			text[used++] = (char)ch;
	if (used && text[used - 1] == '\r')
		text[--used] = 0;
	if (!strncmp(text, HEADER_START, strlen(HEADER_START)) && strcmp(text, KX_AFPERF_HEADER))
		return bad(s, s->start, "there is a header of another version");
	return 0;
}

/* The rest of a quoted field, after its first quote; the byte that follows it in *@after. */
static int quoted(struct scan *s, size_t *used, int *after)
{
	for (;;) {
		int ch = next(s);

		if (ch == EOF)
			return bad(s, s->start, "a quoted field has no end in the record");
		if (ch == '"') {
			*after = next(s);
			if (*after != '"')
				return 0;
		}
		keep(s, used, ch);
	}
}

/* 1 with a record's first fields, 0 at the end. Comments and empty lines have no fields. */
static int read_record(struct scan *s)
{
	size_t used;
	int ch, r;

	s->nfields = 0;
	s->start = s->at;
	ch = next(s);
	if (ch == EOF)
		return 0;
	if (ch == '#') {
		r = comment(s);
		return r ? r : 1;
	}
	begin_field(s, &used);
	for (bool first = true; ch != EOF && ch != '\n'; first = false) {
		if (ch == ',') {
			begin_field(s, &used);
			ch = next(s);
			first = true;
		}
		if (ch == '"' && first) {
			r = quoted(s, &used, &ch);
			if (r)
				return r;
			continue;
		}
		if (ch == EOF || ch == '\n' || ch == ',')
			continue;
		if (ch != '\r')
			keep(s, &used, ch);
		ch = next(s);
	}
	return 1;
}

static void take_id(const char *text, uint64_t *max)
{
	char *end;
	uint64_t id;

	if (*text < '0' || *text > '9')
		return;
	errno = 0;
	id = strtoull(text, &end, text[1] == 'x' || text[1] == 'X' ? 16 : 10);
	if (!errno && !*end && id < MAX_USED && id > *max)
		*max = id;
}

static int take_record(struct scan *s, struct kx_afperf_old *old)
{
	const char *type = s->fields[0];

	if (s->nfields < FIELDS)
		return 0;
	if (!strcmp(type, "RunInfo") || !strcmp(type, "8")) {
		if (strncmp(s->fields[4], "1.", 2))
			return bad(s, s->start, "a run is not of format version 1");
	} else if (!strcmp(type, "SectionInfo") || !strcmp(type, "11")) {
		take_id(s->fields[3], &old->max_section);
	} else if (!strcmp(type, "MeasurementType") || !strcmp(type, "1")) {
		take_id(s->fields[3], &old->max_type);
	}
	return 0;
}

static int scan(struct scan *s, struct kx_afperf_old *old)
{
	char header[sizeof(KX_AFPERF_HEADER)] = "";
	size_t n = fread(header, 1, sizeof(header) - 1, s->f);
	int r, ch;

	old->empty = !n && !ferror(s->f);
	if (old->empty)
		return 0;
	if (strcmp(header, KX_AFPERF_HEADER) && !ferror(s->f))
		return bad(s, 0, "it does not begin with the header of AFPerf version 1");
	s->at = n;
	s->last = ' ';
	ch = next(s);
	if (ch == '\r')
		ch = next(s);
	if (ch != '\n' && ch != EOF)
		return bad(s, n, "something follows the header in its line");
	while ((r = read_record(s)) > 0) {
		r = take_record(s, old);
		if (r)
			return r;
	}
	if (!r && s->mark)
		r = bad(s, s->mark - 1, "there is a byte order mark");
	old->open_line = s->last != '\n';
	if (!r && ferror(s->f))
		r = kx_err_set(s->err, -EIO, "cannot read %s: %s", s->path, strerror(errno));
	return r;
}

int kx_afperf_check_old(const char *path, struct kx_afperf_old *old, struct kx_err *err)
{
	struct scan s = { .path = path, .err = err, .last = EOF };
	struct stat st;
	int r;

	memset(old, 0, sizeof(*old));
	s.f = fopen(path, "re");
	if (!s.f) {
		old->empty = errno == ENOENT;
		r = -errno;
		return old->empty ? 0 : kx_err_set(err, r, "cannot read %s: %s", path,
						   strerror(errno));
	}
	if (!fstat(fileno(s.f), &st) && !S_ISREG(st.st_mode))
		r = kx_err_set(err, -EINVAL, "%s cannot be appended to: it is not a regular file",
			       path);
	else
		r = scan(&s, old);
	fclose(s.f);
	return r;
}
