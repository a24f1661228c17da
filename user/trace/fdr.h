// SPDX-License-Identifier: BSD-2-Clause
/*
 * The XRay FDR format on disk: constants that the writer and the reader share. Little-endian.
 * Sources: XRayFDRFormat.rst (version 1 of 2017-07-20) and, where they differ from it, llvm-xray
 * 14.0.6 and 19.1.7.
 *
 * The room trace/ owns everything that is in the files of a recording, in both directions: the FDR
 * file (fdr_writer.h, fdr_reader.h), the notes in it (notes.h) and the map beside it (map_file.h).
 * The FDR file is the only thing that recording writes and that reading commands read, so whatever
 * they exchange is defined here. Nothing in this room depends on how events are recorded.
 */
#ifndef KX_FDR_H
#define KX_FDR_H

#define KX_FDR_HEADER_SIZE   32
#define KX_FDR_FUNCTION_SIZE 8
#define KX_FDR_METADATA_SIZE 16
#define KX_FDR_TYPE_NAIVE    0
#define KX_FDR_TYPE_FDR	     1
#define KX_FDR_MIN_VERSION   1
#define KX_FDR_MAX_VERSION   5
#define KX_FDR_MAX_FUNC	     ((1u << 28) - 1)

/* Kind of a metadata record: first byte >> 1. */
enum kx_fdr_metadata {
	KX_FDR_NEW_BUFFER = 0,	   /* i32 tid */
	KX_FDR_END_OF_BUFFER = 1,  /* version 1 only */
	KX_FDR_NEW_CPU_ID = 2,	   /* u16 cpu, u64 absolute tsc */
	KX_FDR_TSC_WRAP = 3,	   /* u64 absolute tsc */
	KX_FDR_WALL_TIME = 4,	   /* u64 seconds, u32 microseconds */
	KX_FDR_CUSTOM_EVENT = 5,   /* i32 size, then u64 tsc [u16 cpu], v5: i32 delta */
	KX_FDR_CALL_ARGUMENT = 6,  /* u64 argument */
	KX_FDR_BUFFER_EXTENTS = 7, /* u64 size of what follows, version 3 to 5 */
	KX_FDR_TYPED_EVENT = 8,	   /* i32 size, i32 delta, u16 type */
	KX_FDR_PID = 9,		   /* i32 pid */
};

/* Action of a function record: bits 1 to 3 of its first word. */
enum kx_fdr_action {
	KX_FDR_ENTRY = 0,
	KX_FDR_EXIT = 1,
	KX_FDR_TAIL_EXIT = 2,
	KX_FDR_ENTRY_ARGS = 3,
};

/*
 * Custom events that kxray itself writes: see notes.h. With record --callers (the map's session
 * says "callers":true) the last CallArgument of each entry is its return address, a run-time
 * address; those before it are the captured arguments.
 */

#endif
