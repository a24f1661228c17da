// SPDX-License-Identifier: BSD-2-Clause
/* Off-CPU times in reports and exports, compared with a simple model. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>

#include "export_run.h"
#include "report/report.h"
#include "trace/notes.h"

extern const struct kx_exporter kx_exporter_chrome, kx_exporter_csv, kx_exporter_perfetto,
	kx_exporter_xray;

#define THREADS 3
#define FUNCS 5
#define STEPS 400
#define NONE UINT32_MAX

struct span {
	uint64_t from, wake, to;
};

struct model_call {
	uint64_t enter, leave; /* leave 0: never */
	uint32_t func, parent; /* index, or NONE */
};

/* The calls and intervals of one thread; all times are even, so that odd bounds never equal them. */
struct model_thread {
	struct model_call calls[STEPS];
	struct span spans[STEPS];
	size_t ncalls, nspans;
};

static struct model_thread model[THREADS];
static uint64_t first_tsc, last_tsc;

static uint64_t pick(uint64_t below)
{
	return (uint64_t)rand() % below;
}

static void write_thread(struct kx_fdr_thread *t, struct model_thread *m)
{
	uint64_t now = EXPORT_T0;
	uint32_t stack[64], depth = 0;

	memset(m, 0, sizeof(*m));
	for (int step = 0; step < STEPS; step++) {
		uint64_t what = pick(10);

		now += 2 * pick(50);
		if (what < 4 && depth < 60) {
			uint32_t func = 1 + (uint32_t)pick(FUNCS);

			enter(t, now, 0, func);
			m->calls[m->ncalls] = (struct model_call){
				now, 0, func, depth ? stack[depth - 1] : NONE,
			};
			stack[depth++] = (uint32_t)m->ncalls++;
		} else if (what < 8 && depth) {
			struct model_call *c = &m->calls[stack[--depth]];

			leave(t, now, 0, c->func);
			c->leave = now;
		} else if (what >= 8) {
			struct kx_sched_interval i = { .from = now, .state = pick(3) ? 'S' : 'R' };
			char text[128];

			i.to = now + 2 + 2 * pick(300);
			i.wake = i.state == 'R' ? i.from : i.from + 2 * pick((i.to - i.from) / 2);
			i.has_waker = pick(2);
			(void)kx_note_format(&(struct kx_note){ .kind = KX_NOTE_SCHED, .sched = i }, text,
				     sizeof(text));
			note(t, i.to, text);
			m->spans[m->nspans++] = (struct span){ i.from, i.wake, i.to };
			now = i.to;
		}
	}
	if (now > last_tsc)
		last_tsc = now;
}

static void write_model(unsigned seed)
{
	struct kx_fdr_writer *w;
	int fd;

	srand(seed);
	w = begin_trace(1 + (int)seed % 5, 1000000000, &fd);
	first_tsc = EXPORT_T0;
	last_tsc = 0;
	for (int i = 0; i < THREADS; i++)
		write_thread(kx_fdr_writer_thread(w, 1, 10 + i, "t", "p"), &model[i]);
	end_trace(w, fd);
}

static uint64_t overlap(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t from = a > c ? a : c, to = b < d ? b : d;

	return to > from ? to - from : 0;
}

struct sums {
	uint64_t count, total, off, wait, self_off;
};

/* A call's off-CPU ticks between @from and @to. */
static uint64_t off_of(const struct model_thread *m, const struct model_call *c, uint64_t from,
		       uint64_t to, bool waiting)
{
	uint64_t off = 0, begin = c->enter > from ? c->enter : from,
		 end = c->leave && c->leave < to ? c->leave : to;

	for (size_t i = 0; i < m->nspans; i++)
		off += overlap(begin, end, waiting ? m->spans[i].wake : m->spans[i].from,
			       m->spans[i].to);
	return off;
}

static bool is_outermost(const struct model_thread *m, const struct model_call *c)
{
	for (uint32_t p = c->parent; p != NONE; p = m->calls[p].parent)
		if (m->calls[p].func == c->func)
			return false;
	return true;
}

/* Sums over the calls of @thread (-1: all) that end in the range. */
static void add_up(int thread, uint64_t from, uint64_t to, struct sums sums[FUNCS + 1])
{
	memset(sums, 0, (FUNCS + 1) * sizeof(*sums));
	for (int t = 0; t < THREADS; t++) {
		const struct model_thread *m = &model[t];

		for (size_t i = 0; (thread < 0 || thread == t) && i < m->ncalls; i++) {
			const struct model_call *c = &m->calls[i];
			struct sums *s = &sums[c->func];

			if (!c->leave || c->leave < from || c->leave > to)
				continue;
			s->count++;
			s->self_off += off_of(m, c, from, to, false);
			for (size_t k = i + 1; k < m->ncalls; k++)
				if (m->calls[k].parent == i)
					s->self_off -= off_of(m, &m->calls[k], from, to, false);
			if (!is_outermost(m, c))
				continue;
			s->total += c->leave - (c->enter > from ? c->enter : from);
			s->off += off_of(m, c, from, to, false);
			s->wait += off_of(m, c, from, to, true);
		}
	}
}

static void check_report(const char *path, const struct kx_call_filter *filter,
			 const struct sums *want)
{
	struct kx_report_options options = { 0 };
	struct kx_symbolizer names = { 0 };
	struct kx_fdr_file *f = NULL;
	struct kx_report *r = NULL;
	struct kx_err err = { 0 };

	if (kx_fdr_open(path, &f, &err) ||
	    (filter && kx_calls_new(f, &names, filter, &options.calls, &err)) ||
	    kx_report_new(f, &options, &r, &err))
		fail_msg("%s", err.text);
	assert_true(kx_report_get_totals(r)->has_sched);
	for (size_t i = 0; i < kx_report_nfunctions(r); i++) {
		struct kx_report_function got;

		kx_report_get_function(r, i, &got);
		assert_in_range(got.id, 1, FUNCS);
		assert_int_equal(got.count - got.open, want[got.id].count);
		assert_int_equal(got.total, want[got.id].total);
		assert_int_equal(got.off, want[got.id].off);
		assert_int_equal(got.wait, want[got.id].wait);
		assert_int_equal(got.self_off, want[got.id].self_off);
		assert_true(got.wait <= got.off && got.off <= got.total && got.self_off <= got.self);
	}
	kx_report_free(r);
	kx_calls_free(options.calls);
	kx_fdr_close(f);
}

static void reports(void **state)
{
	struct sums want[FUNCS + 1];

	(void)state;
	for (unsigned seed = 1; seed <= 60; seed++) {
		int32_t tid = 10 + (int32_t)(seed % THREADS);
		struct kx_call_filter filter = { 0 };

		write_model(seed);
		add_up(-1, 0, UINT64_MAX, want);
		check_report(trace_path, NULL, want);
		/* the call view gives the same */
		filter.max_depth = 1000;
		check_report(trace_path, &filter, want);
		for (int n = 0; n < 20; n++) {
			uint64_t length = last_tsc - first_tsc, from, to;

			from = 1 + 2 * pick(length / 2);
			to = from + 2 + 2 * pick(length / 2);
			filter = (struct kx_call_filter){ .from_ns = from, .to_ns = to };
			add_up(-1, first_tsc + from, first_tsc + to, want);
			check_report(trace_path, &filter, want);
			filter.tids = &tid;
			filter.ntids = 1;
			add_up(tid - 10, first_tsc + from, first_tsc + to, want);
			check_report(trace_path, &filter, want);
		}
	}
}

/* Compares the last column of a row, found by thread, start and depth, with the model. */
static void csv_rows(void **state)
{
	struct exported e;
	size_t rows = 0, calls = 0;
	char *line, *rest;

	(void)state;
	write_model(7);
	run_export(&kx_exporter_csv, NULL, NULL, false, &e);
	assert_int_equal(e.result, 0);
	rest = (char *)e.data;
	line = strsep(&rest, "\n");
	assert_non_null(strstr(line, ",result,off_cpu_ns\r"));
	while (rest && *(line = strsep(&rest, "\n"))) {
		const char *last = strrchr(line, ',') + 1;
		unsigned tid, depth = 0;
		uint64_t start, took, self;
		size_t match = 0;

		assert_int_equal(sscanf(line, "1,%u,t,%*[^,],,%" SCNu64 ",%" SCNu64 ",%" SCNu64 ",%u",
					&tid, &start, &took, &self, &depth), 5);
		for (size_t i = 0; i < model[tid - 10].ncalls; i++) {
			const struct model_thread *m = &model[tid - 10];
			const struct model_call *c = &m->calls[i];
			uint64_t end = c->leave ? c->leave : last_tsc;
			unsigned above = 1;

			for (uint32_t p = c->parent; p != NONE; p = m->calls[p].parent)
				above++;
			if (c->enter != EXPORT_T0 + start || end - c->enter != took ||
			    above != depth ||
			    strtoull(last, NULL, 10) != off_of(m, c, 0, UINT64_MAX, false))
				continue;
			match++;
		}
		assert_true(match >= 1);
		rows++;
	}
	for (int t = 0; t < THREADS; t++)
		calls += model[t].ncalls;
	assert_int_equal(rows, calls);
	free_export(&e);
}

/* The scheduling lines that @reader prints for the output. */
static void check_timeline(const char *reader, const char *want)
{
	char command[256], got[4096];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "python3 tests/readers/%s %s | grep ^sched", reader,
		 output_path);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(got, 1, sizeof(got) - 1, f);
	got[n] = 0;
	assert_int_equal(pclose(f), 0);
	assert_string_equal(got, want);
}

static void sched(struct kx_fdr_thread *t, uint64_t from, uint64_t wake, uint64_t to, char why,
		  int waker, bool open)
{
	const struct kx_sched_interval i = {
		.from = EXPORT_T0 + from, .wake = EXPORT_T0 + wake, .to = EXPORT_T0 + to,
		.state = why, .has_waker = waker >= 0, .waker = waker < 0 ? 0 : (uint32_t)waker,
		.open = open,
	};
	char text[128];

	(void)kx_note_format(&(struct kx_note){ .kind = KX_NOTE_SCHED, .sched = i }, text,
				     sizeof(text));
	note(t, i.to, text);
}

static void timelines(void **state)
{
	const char *want =
		"sched 1 10 0 100 \"off the CPU\" waker=0\n"
		"sched 1 10 100 50 \"runnable\"\n"
		"sched 1 10 150 50 \"running\" cpu=2\n"
		"sched 1 10 200 10 \"sleeping\" waker=77\n"
		"sched 1 10 210 10 \"runnable\"\n"
		"sched 1 10 220 80 \"running\" cpu=3\n"
		"sched 1 10 300 20 \"runnable\"\n"
		"sched 1 10 320 80 \"running\" cpu=3\n"
		"sched 1 10 400 600 \"blocked\"\n"
		"sched 1 11 350 50 \"runnable\"\n"
		"sched 1 11 400 100 \"running\" cpu=1\n"
		/* this thread makes a call before it is off-CPU for the first time */
		"sched 1 12 100 100 \"running\" cpu=0\n"
		"sched 1 12 200 100 \"sleeping\"\n"
		"sched 1 12 300 700 \"running\" cpu=0\n";
	struct kx_fdr_thread *a, *b, *c;
	struct kx_fdr_writer *w;
	struct exported e;
	int fd;

	(void)state;
	w = begin_trace(0, 1000000000, &fd);
	a = kx_fdr_writer_thread(w, 1, 10, "t", "p");
	assert_int_equal(kx_fdr_cpu(a, EXPORT_T0 + 150, 2), 0);
	sched(a, 0, 100, 150, '?', 0, false);
	enter(a, EXPORT_T0 + 160, 2, 1);
	/* it is migrated while it waits */
	assert_int_equal(kx_fdr_cpu(a, EXPORT_T0 + 215, 3), 0);
	sched(a, 200, 210, 220, 'S', 77, false);
	sched(a, 300, 300, 320, 'R', -1, false);
	sched(a, 400, 1000, 1000, 'D', -1, true);
	/* it makes no calls */
	b = kx_fdr_writer_thread(w, 1, 11, "new", "p");
	assert_int_equal(kx_fdr_cpu(b, EXPORT_T0 + 400, 1), 0);
	sched(b, 350, 350, 400, 'N', 10, false);
	note(b, EXPORT_T0 + 500, "an event");
	c = kx_fdr_writer_thread(w, 1, 12, "c", "p");
	enter(c, EXPORT_T0 + 100, 0, 1);
	sched(c, 200, 300, 300, 'S', -1, false);
	leave(c, EXPORT_T0 + 1000, 0, 1);
	end_trace(w, fd);
	run_export(&kx_exporter_chrome, NULL, NULL, false, &e);
	assert_int_equal(e.result, 0);
	free_export(&e);
	check_timeline("chrome.py", want);
	run_export(&kx_exporter_perfetto, NULL, NULL, false, &e);
	assert_int_equal(e.result, 0);
	free_export(&e);
	check_timeline("perfetto.py", want);
}

/* The report of the trace exported as XRay is the same. */
static void xray_keeps_them(void **state)
{
	struct sums want[FUNCS + 1];
	struct exported e;

	(void)state;
	write_model(11);
	add_up(-1, 0, UINT64_MAX, want);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	assert_int_equal(e.result, 0);
	free_export(&e);
	check_report(output_path, NULL, want);
}

/* Impossible traces: on-CPU and off-CPU times still add up to the total. */
static void nonsense(void **state)
{
	static const char *const notes[] = {
		"kxray:sched {\"off\":18446744073709551,\"state\":\"S\"}",
		"kxray:sched {\"off\":900,\"state\":\"S\",\"wait\":901}",
		"kxray:sched {\"off\":",
		"kxray:sched []",
		"kxray:sched ",
	};
	struct kx_report_options options = { 0 };
	struct kx_report_function got;
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct kx_fdr_file *f = NULL;
	struct kx_report *r = NULL;
	struct kx_err err = { 0 };
	int fd;

	(void)state;
	w = begin_trace(0, 1000000000, &fd);
	t = kx_fdr_writer_thread(w, 1, 10, "t", "p");
	enter(t, EXPORT_T0 + 10, 0, 1);
	enter(t, EXPORT_T0 + 20, 0, 2);
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		note(t, EXPORT_T0 + 30, notes[i]);
	leave(t, EXPORT_T0 + 40, 0, 2);
	leave(t, EXPORT_T0 + 100, 0, 1);
	leave(t, EXPORT_T0 + 100, 0, 1);
	end_trace(w, fd);
	if (kx_fdr_open(trace_path, &f, &err) || kx_report_new(f, &options, &r, &err))
		fail_msg("%s", err.text);
	kx_report_get_function(r, 0, &got);
	assert_int_equal(got.total, 90);
	assert_true(got.off <= got.total && got.self_off <= got.self && got.wait <= got.off);
	kx_report_get_function(r, 1, &got);
	assert_int_equal(got.off, 20);
	kx_report_free(r);
	kx_fdr_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports),
		cmocka_unit_test(csv_rows),
		cmocka_unit_test(timelines),
		cmocka_unit_test(xray_keeps_them),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
