// SPDX-License-Identifier: BSD-2-Clause
#include "record/dump_cause.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json_text.h"
#include "record/trigger.h"

static const char *const kinds[] = { "entry", "condition", "slow", "signal", "end", "exit", "crash" };

bool kx_reason_is_crash(uint32_t status)
{
	/* signals whose default action is a core dump */
	static const unsigned signals[] = { SIGQUIT, SIGILL,	 SIGTRAP, SIGABRT, SIGBUS,
				       SIGFPE,	SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS };

	for (size_t i = 0; WIFSIGNALED(status) && i < sizeof(signals) / sizeof(signals[0]); i++)
		if ((unsigned)WTERMSIG(status) == signals[i])
			return true;
	return false;
}

static const char *function_name(const struct kx_selection *sel, uint32_t id)
{
	return id && id <= sel->nfunctions ? sel->functions[id - 1].sym->pretty : "a function";
}

static void describe_end(const struct kx_reason *why, const char *comm, char *text, unsigned size)
{
	const struct kx_trigger_event *ev = &why->event;
	const char *kind = kinds[why->kind];
	const char *name;

	if (!why->status_known) {
		snprintf(text, size, "%s: process %u ended", kind, ev->tgid);
	} else if (WIFSIGNALED(ev->status)) {
		name = sigabbrev_np(WTERMSIG(ev->status));
		if (name)
			snprintf(text, size, "%s: process %u (%s) was killed by SIG%s", kind, ev->tgid,
				 comm, name);
		else
			snprintf(text, size, "%s: process %u (%s) was killed by signal %d", kind,
				 ev->tgid, comm, WTERMSIG(ev->status));
	} else {
		snprintf(text, size, "%s: process %u (%s) ended with status %d", kind, ev->tgid, comm,
			 WEXITSTATUS(ev->status));
	}
}

char *kx_reason_text(const struct kx_reason *why, const struct kx_selection *sel, char *text,
		     unsigned size)
{
	const struct kx_trigger_event *ev = &why->event;
	char comm[sizeof(ev->comm) + 1] = "", lasted[32], limit[32];

	memcpy(comm, ev->comm, sizeof(ev->comm));
	switch (why->kind) {
	case KX_REASON_ENTRY:
		snprintf(text, size, "entry: %s in thread %u (%s)", function_name(sel, ev->func),
			 ev->tid, comm);
		break;
	case KX_REASON_CONDITION:
		snprintf(text, size, "condition: %s met it in thread %u (%s)", function_name(sel, ev->func), ev->tid, comm);
		break;
	case KX_REASON_SLOW:
		snprintf(text, size, "slow: %s took %s > %s in thread %u (%s)",
			 function_name(sel, ev->func),
			 kx_trigger_duration(ev->value, lasted, sizeof(lasted)),
			 kx_trigger_duration(why->limit_ns, limit, sizeof(limit)), ev->tid, comm);
		break;
	case KX_REASON_SIGNAL:
		snprintf(text, size, "signal: SIGUSR1");
		break;
	case KX_REASON_END:
		snprintf(text, size, "end: of the recording");
		break;
	default:
		describe_end(why, comm, text, size);
	}
	return text;
}

static void set_number(json_t *j, const char *key, uint64_t value)
{
	json_object_set_new(j, key, json_integer((json_int_t)value));
}

json_t *kx_reason_json(const struct kx_reason *why, const struct kx_selection *sel)
{
	const struct kx_trigger_event *ev = &why->event;
	char text[512], comm[sizeof(ev->comm) + 1] = "";
	json_t *j = json_object();
	const char *name;

	if (!j)
		return NULL;
	memcpy(comm, ev->comm, sizeof(ev->comm));
	json_object_set_new(j, "kind", json_string(kinds[why->kind]));
	json_object_set_new(j, "text",
			    kx_json_text(kx_reason_text(why, sel, text, sizeof(text)), sizeof(text)));
	set_number(j, "tsc", why->tsc);
	if (why->kind == KX_REASON_SIGNAL || why->kind == KX_REASON_END)
		return j;
	set_number(j, "pid", ev->tgid);
	if (why->kind == KX_REASON_ENTRY || why->kind == KX_REASON_CONDITION || why->kind == KX_REASON_SLOW) {
		set_number(j, "tid", ev->tid);
		json_object_set_new(j, "function",
				    kx_json_text(function_name(sel, ev->func), sizeof(text)));
	}
	if (why->kind == KX_REASON_SLOW) {
		set_number(j, "duration_ns", ev->value);
		set_number(j, "limit_ns", why->limit_ns);
	}
	if (*comm)
		json_object_set_new(j, "name", kx_json_text(comm, sizeof(comm)));
	if ((why->kind != KX_REASON_EXIT && why->kind != KX_REASON_CRASH) || !why->status_known)
		return j;
	if (WIFSIGNALED(ev->status)) {
		name = sigabbrev_np(WTERMSIG(ev->status));
		set_number(j, "signal", (uint64_t)WTERMSIG(ev->status));
		if (name)
			json_object_set_new(j, "signal_name", json_sprintf("SIG%s", name));
	} else {
		set_number(j, "status", WEXITSTATUS(ev->status));
	}
	return j;
}
