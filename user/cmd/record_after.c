// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record_after.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/output.h"
#include "base/printable.h"
#include "base/screen.h"
#include "base/shell_word.h"
#include "base/stop_request.h"
#include "cmd/cmd.h"
#include "cmd/cmd_export.h"
#include "cmd/export_formats.h"
#include "cmd/trace_input.h"
#include "report/report.h"
#include "report/report_format.h"

#define SHOWN	   5
#define LEAST_NAME 12 /* columns: where fewer are left, calls are not shown */
/* About 8 million events, which take some tenths of a second to read; compressed ones have to be
 * decompressed first. */
#define MOST_BYTES	(64u << 20)
#define MOST_COMPRESSED (12u << 20)

/* A page for any browser, or what the Perfetto site takes where there is none. */
static const struct kx_exporter *format_to_look_at(void)
{
	const struct kx_exporter *format = NULL;

	if (kx_format_find("html", &format, NULL))
		kx_format_find("perfetto", &format, NULL);
	return format;
}

int kx_record_set_open(void *field, const struct kx_option *o, const char *value,
		       struct kx_err *err)
{
	const struct kx_exporter **format = field;

	(void)o;
	if (value)
		return kx_format_find(value, format, err);
	*format = format_to_look_at();
	return 0;
}

/* The newest file that was written; NULL: none. */
static const char *trace_of(const struct kx_record_arguments *a,
			    const struct kx_recording_result *r)
{
	if (a->o.flight)
		return r->flight.last[0] ? r->flight.last : NULL;
	return r->files ? r->newest : a->o.output;
}

static bool is_small(const char *path)
{
	bool compressed = path[kx_output_stem(path)];
	struct stat st;

	return !stat(path, &st) && st.st_size <= (compressed ? MOST_COMPRESSED : MOST_BYTES);
}

static int most_first(const void *a, const void *b)
{
	const struct kx_report_function *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

/* The first functions by self time, or by calls if none has a time; returns how many. */
static size_t find_first(const struct kx_report *report, struct kx_report_function first[SHOWN])
{
	size_t n = kx_report_nfunctions(report), shown = n < SHOWN ? n : SHOWN;
	struct kx_report_function *all = calloc(n + 1, sizeof(*all));

	if (!all)
		return 0;
	for (size_t i = 0; i < n; i++)
		kx_report_get_function(report, i, &all[i]);
	qsort(all, n, sizeof(*all), most_first);
	memcpy(first, all, shown * sizeof(*first));
	free(all);
	return shown;
}

/* Whether these functions are of several modules, so that a name alone might not say which one it
 * is. */
static bool has_modules(struct kx_symbolizer *names, const struct kx_report_function *first,
			size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (strcmp(kx_trace_module(names, first[i].id),
			   kx_trace_module(names, first[0].id)) != 0)
			return true;
	return false;
}

/* With @self (of all functions) their times, else only calls. */
static void put_rows(struct kx_text_out *out, struct kx_trace_input *t,
		     const struct kx_report_function *first, size_t n, uint64_t self)
{
	const struct kx_screen screen = kx_screen_of(STDERR_FILENO, KX_COLOR_AUTO, false);
	const uint64_t hz = kx_fdr_get_info(t->file)->tsc_hz;
	const bool modules = has_modules(&t->names, first, n);
	char calls[KX_GROUPED_SIZE], text[64];
	size_t used;

	for (size_t i = 0; i < n; i++) {
		double share = self ? (double)first[i].self / (double)self : 0;

		used = 0;
		if (self) {
			used = (size_t)snprintf(text, sizeof(text), "%7.1f %%", share * 100) +
			       KX_TIME_WIDTH(hz);
			kx_put_styled(out, &screen, kx_screen_share_style(share), text);
			kx_put_time(out, first[i].self, hz);
		}
		used += (size_t)snprintf(text, sizeof(text), "%14s call%s  ",
					 kx_decimal_grouped(calls, first[i].count),
					 first[i].count == 1 ? " " : "s");
		if (self && screen.columns && screen.columns < used + LEAST_NAME) {
			used -= strlen(text) - 2;
			strcpy(text, "  ");
		}
		kx_text_str(out, text);
		kx_put_function(out, &screen, kx_trace_name(&t->names, first[i].id),
				modules ? kx_trace_module(&t->names, first[i].id) : "",
				screen.columns > used + 1 ? screen.columns - used : 1);
		kx_text_char(out, '\n');
	}
}

static void print_first(const struct kx_report *report, struct kx_trace_input *t)
{
	struct kx_report_function first[SHOWN];
	size_t n = find_first(report, first);
	static struct kx_text_out out;
	uint64_t self = kx_report_get_totals(report)->self;

	if (!n)
		return;
	fflush(stderr);
	kx_text_init(&out, STDERR_FILENO);
	kx_text_str(&out, self ? "kxray: most time of their own, without what they call:\n"
			       : "kxray: called most, without measured times:\n");
	put_rows(&out, t, first, n, self);
	kx_text_flush(&out);
}

/* Failures say nothing: the recording itself is whole, and `kxray report` explains them. */
static void show_first(const char *path)
{
	struct kx_trace_input t = { .path = path };
	struct kx_report_options options = { 0 };
	struct kx_report *report = NULL;
	struct kx_err err;

	if (!kx_trace_input_open(&t, false, &err)) {
		options.session = t.names.has_map ? t.names.map.session : NULL;
		if (!kx_report_new(t.file, &options, &report, &err))
			print_first(report, &t);
	}
	kx_report_free(report);
	kx_trace_input_close(&t);
}

static void show_next(const struct kx_record_arguments *a, const char *path)
{
	const struct kx_exporter *look = a->open ? NULL : format_to_look_at();
	char *word = kx_shell_word(path);

	if (word && look)
		kx_print(stderr, "kxray: next: kxray report %s, or kxray export -f %s %s\n", word,
			 look->name, word);
	else if (word)
		kx_print(stderr, "kxray: next: kxray report %s\n", word);
	free(word);
}

/* A browser refuses to run as root: under sudo it is the user's. */
static void become_user(void)
{
	const char *name = getenv("SUDO_USER");
	struct passwd *user = !geteuid() && name ? getpwnam(name) : NULL;

	if (!user)
		return;
	if (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid))
		_exit(1);
	setenv("HOME", user->pw_dir, 1);
}

static void start_viewer(const char *path)
{
	pid_t child = fork();
	int null;

	/* the grandchild is nobody's to wait for */
	if (child > 0)
		waitpid(child, NULL, 0);
	if (child)
		return;
	if (!fork()) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		setsid();
		null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3 && null >= 0; fd++)
			dup2(null, fd);
		become_user();
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
	}
	_exit(0);
}

/* Programs are found by execlp; this only decides whether to say that one is started. */
static bool has_viewer(void)
{
	const char *display = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY"),
		   *path = getenv("PATH");
	char file[4096];

	if (!(display && *display) && !(wayland && *wayland))
		return false;
	for (size_t n; path && *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/xdg-open", (int)n, path);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

/* Exports to --open's format; a page is opened, other formats have viewers that must be given the
 * file. */
static int open_trace(const struct kx_record_arguments *a, const char *trace)
{
	char *path = kx_export_default_path(trace, NULL, a->open);
	sigset_t stop;
	int status;

	/* the recording has blocked them; an export may be interrupted */
	kx_stop_signals(&stop);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	status = kx_export_trace(trace, a->open, a->quiet || a->json);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	if (status || !path || strcmp(a->open->suffix, ".html") || !has_viewer()) {
		free(path);
		return status;
	}
	if (!a->quiet && !a->json)
		kx_print(stderr, "kxray: opening %s\n", path);
	start_viewer(path);
	free(path);
	return status;
}

int kx_record_after(const struct kx_record_arguments *a, const struct kx_recording_result *r)
{
	const char *path = trace_of(a, r);
	bool shows = !a->quiet && !a->json && isatty(STDERR_FILENO);

	if (!path || !r->counts.events)
		return KX_EXIT_DONE;
	if (shows && is_small(path))
		show_first(path);
	else if (shows)
		kx_print(stderr, "kxray: the trace is too large to be read in passing; 'kxray "
				 "report' shows its functions\n");
	if (shows)
		show_next(a, path);
	return a->open ? open_trace(a, path) : KX_EXIT_DONE;
}
