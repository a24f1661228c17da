// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The recorder for kxray top: the same programs on the same probes, but calls are counted and timed
 * (top.bpf.h) where the recorder puts records into rings. Compiled from the same source, so that
 * user space finds the same programs, maps and variables in both objects, and as an object of its
 * own, so that the programs of a recording are without it.
 */
#define KX_FOR_TOP
/* what decides about records */
#pragma clang diagnostic ignored "-Wunused-function"
#include "record.bpf.c"
