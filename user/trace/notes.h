// SPDX-License-Identifier: BSD-2-Clause
/*
 * The notes that kxray writes into traces: custom events "kxray:KIND {JSON}", which other XRay
 * tools show as text or skip. Each kind is one row of the table in notes.c, which both writes and
 * reads it.
 *
 *   thread   {"tid":2,"pid":1,"name":"worker","process":"server"}
 *            first body record of every thread, at the start of the trace; once more at that time
 * when another thread gets the same ids; at its own time: a change of name. "ns_pid", "ns_tid": the
 * ids in the thread's own pid namespace, if they differ session  {...}  see map_file.h; once, in
 * the first thread of the file loss     {"entries":3,"exits":2,"from":TSC,"to":TSC}  events lost in
 * this thread between these times repaired {"exits":2}  the next 2 exits of this thread were added
 * by kxray continued {"calls":2}  the next 2 entries of this thread, at their true times, are in an
 * earlier file of a rotated trace (record --rotate): the calls were open when this file began
 * result   {"value":-2}  what the call that exits next in this thread returns; of system
 * calls, with record --args, of all functions with --results sample   {"ip":"0x7f12..."}  the thread was on a CPU, at this run-time
 * address in user space; with record --sample sched
 * {"off":TICKS,"state":"S","wait":TICKS,"by":TID,"on":CPU,"open":true}  the thread is back on a CPU; with
 * record --sched. It left its CPU "off" ticks ago (or at the start of the recording), "state" says
 * why (see off_cpu.h); it was runnable during the last "wait" of these ticks and woken by thread
 * "by" (0: an interrupt), which ran on CPU "on". "open": the recording ended before it was back
 *
 *
 * One kind is binary: "kxray:values " and the little-endian 64-bit words that struct kx_fetch describes (../bpf/wire.h) are the
 * values of the entry or the exit that comes next in this thread; what they are is in the map (values.h).
 *
 * Notes of kinds that are not in the table come from a newer kxray; readers pass them on as they
 * are.
 *
 * A new kind is one value of the enum and one row of the table. A kind whose values are all numbers
 * needs no code: the row names its fields, and kx_note.values holds them in the same order.
 */
#ifndef KX_NOTES_H
#define KX_NOTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/fdr_reader.h"
#include "trace/off_cpu.h"

#define KX_NOTE_PREFIX "kxray:"
#define KX_NOTE_MAX    4096 /* bytes, of any custom event */
#define KX_NOTE_VALUES 6

enum kx_note_kind {
	KX_NOTE_NONE,	 /* not one of kxray's notes */
	KX_NOTE_UNKNOWN, /* of a kind that is not in the table */
	KX_NOTE_THREAD,
	KX_NOTE_SESSION,
	KX_NOTE_LOSS,
	KX_NOTE_REPAIRED,
	KX_NOTE_RESULT,
	KX_NOTE_SAMPLE,
	KX_NOTE_SCHED,
	KX_NOTE_CONTINUED,
	KX_NOTE_CALL_VALUES,
	KX_NOTE_KINDS,
	KX_NOTE_INSTANT, /* only for writing: see struct kx_note_layout */
};

enum kx_note_field_type {
	KX_NOTE_COUNT,	 /* 0 or more; 0 if missing */
	KX_NOTE_NUMBER,	 /* with a sign; must be there */
	KX_NOTE_ADDRESS, /* a hexadecimal string; must be there */
};

/*
 * A kind that no reader interprets needs no row in the table: its writer has the layout, and
 * readers pass the note on as one of an unknown kind. That is how kinds of instants are added
 * (collect/event.c).
 */
struct kx_note_layout {
	const char *name;
	struct {
		const char *key;
		enum kx_note_field_type type;
	} fields[KX_NOTE_VALUES]; /* up to the first without a key */
};

/* What identifies a thread. Strings are borrowed; NULL: not known. */
struct kx_fdr_identity {
	int32_t pid, tid;
	const char *name, *process; /* of each, 64 bytes are written */
	int32_t ns_pid, ns_tid;	    /* in its own pid namespace; 0: not known, or the same */
};

struct kx_note {
	enum kx_note_kind kind;
	const struct kx_note_layout *layout; /* of KX_NOTE_INSTANT, whose values are in values */
	json_t *json; /* after reading: owns the strings below; may be NULL */
	union {
		uint64_t values[KX_NOTE_VALUES]; /* of the fields in the table, in their order */
		struct {
			uint64_t entries, exits;
			uint64_t from, to; /* ticks */
		} loss;
		struct {
			uint64_t exits;
		} repaired;
		struct {
			int64_t value;
		} result;
		struct {
			uint64_t calls;
		} continued;
		struct {
			uint64_t ip;
		} sample;
		struct kx_sched_interval sched; /* the time of its note is sched.to */
		struct kx_fdr_identity thread;
		struct {
			const void *data; /* 64-bit words, not aligned; after reading borrowed from the file */
			size_t size;	  /* bytes, a multiple of 8 */
		} payload;
		struct {
			const char *body; /* only for writing: the JSON as text */
			size_t size;
		} session;
	};
};

/*
 * Writes the payload of the custom event, NUL included, into @text of @size bytes. Returns its
 * length without the NUL; -ENOMEM, or -EMSGSIZE if it does not fit.
 */
int kx_note_format(const struct kx_note *note, char *text, size_t size);
/* The same in allocated memory, which the caller frees; NULL if memory runs out. */
char *kx_note_text(const struct kx_note *note);

/*
 * The kind of a record. Sets @body and @size to the JSON of a note, borrowed from the file, not
 * terminated.
 */
enum kx_note_kind kx_note_find(const struct kx_fdr_record *rec, const uint8_t **body,
			       uint32_t *size);
/*
 * Parses the JSON of a note of @kind at the time @tsc. False if it is damaged or memory runs out;
 * readers then ignore the note. Missing or negative numbers are 0, except a result's. Release @out
 * with kx_note_release.
 */
bool kx_note_parse(enum kx_note_kind kind, const uint8_t *body, uint32_t size, uint64_t tsc,
		   struct kx_note *out);
/* Both; @out->kind is the record's kind in any case. Release @out if it returns true. */
bool kx_note_read(const struct kx_fdr_record *rec, struct kx_note *out);
void kx_note_release(struct kx_note *note);

/* A number of a JSON object, for sessions; 0 if it is missing or negative. */
uint64_t kx_note_number(const json_t *object, const char *key);

#endif
