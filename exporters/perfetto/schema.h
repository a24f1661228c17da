// SPDX-License-Identifier: BSD-2-Clause
/*
 * Field numbers and values of the messages that the Perfetto exporter writes, from Perfetto's
 * public protos/perfetto/trace: trace.proto, trace_packet.proto, clock_snapshot.proto,
 * interned_data.proto,
 * track_event/{track_descriptor,process_descriptor,thread_descriptor,track_event,debug_annotation}.proto,
 * system_info.proto, trace_attributes.proto, ftrace/{ftrace_event_bundle,ftrace_event,sched}.proto.
 */
#ifndef KX_PERFETTO_SCHEMA_H
#define KX_PERFETTO_SCHEMA_H

enum { TRACE_PACKET = 1 };

enum packet {
	PACKET_FTRACE_EVENTS = 1,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_SYSTEM_INFO = 45,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_FIRST_ON_SEQUENCE = 87,
	PACKET_TRACE_ATTRIBUTES = 126, /* as SystemInfo.machine_name: Perfetto 58 */
};

enum { FLAGS_CLEARED = 1, FLAGS_NEEDS_STATE = 2 };
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum {
	CLOCK_IS_REALTIME = 1,
	CLOCK_IS_MONOTONIC = 3,
	CLOCK_IS_BOOTTIME = 6
}; /* builtin_clock.proto */
enum { DEFAULTS_CLOCK_ID = 58 };
enum { SYSTEM_UTSNAME = 1, SYSTEM_MACHINE_NAME = 17 };
enum { ATTRIBUTES_ATTRIBUTE = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_STRING = 3 };
enum { UTSNAME_SYSNAME = 1, UTSNAME_RELEASE = 3, UTSNAME_MACHINE = 4 };
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_ANNOTATIONS = 3 };
enum { INTERNED_IID = 1, INTERNED_NAME = 2 };

enum track {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
};

enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

enum event {
	EVENT_CATEGORY_IID = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER_VALUE = 30,
	EVENT_FLOW = 47,	     /* fixed64 */
	EVENT_TERMINATING_FLOW = 48, /* fixed64 */
};

enum type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum annotation_field {
	ANNOTATION_NAME_IID = 1,
	ANNOTATION_NAME = 10,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5, /* fixed64 */
	ANNOTATION_STRING = 6,
	ANNOTATION_POINTER = 7,
};

enum { BUNDLE_CPU = 1, BUNDLE_EVENT = 2, BUNDLE_COMPACT_SCHED = 4 };

/* Packed lists, one item for each switch or wake-up; times are differences. */
enum compact_sched {
	SWITCH_TIMESTAMP = 1,
	SWITCH_PREV_STATE = 2,
	SWITCH_NEXT_PID = 3,
	SWITCH_NEXT_PRIO = 4,
	COMPACT_NAME = 5,
	SWITCH_NEXT_COMM = 6,
	WAKING_TIMESTAMP = 7,
	WAKING_PID = 8,
	WAKING_TARGET_CPU = 9,
	WAKING_PRIO = 10,
	WAKING_COMM = 11,
	WAKING_FLAGS = 12,
};

enum ftrace_event { FTRACE_TIMESTAMP = 1, FTRACE_PID = 2, FTRACE_SCHED_WAKING = 20 };
enum {
	FULL_WAKING_COMM = 1,
	FULL_WAKING_PID = 2,
	FULL_WAKING_PRIO = 3,
	FULL_WAKING_SUCCESS = 4,
	FULL_WAKING_TARGET_CPU = 5
};

#endif
