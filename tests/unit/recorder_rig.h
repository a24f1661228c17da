// SPDX-License-Identifier: BSD-2-Clause
/* The code that is copied into processes, called here, with rings in memory. Include it after cmocka's headers. */
#ifndef KX_TEST_RECORDER_RIG_H
#define KX_TEST_RECORDER_RIG_H

#include <cpuid.h>
#include <errno.h>
#include <libelf.h>
#include <sched.h>
#include <sys/prctl.h>
#include <x86intrin.h>

#include "fast_size.h"
#include "patched.h"

#define ENTRY	  (1u << 28)
#define EXIT	  (2u << 28)
#define TAIL_EXIT (3u << 28)
#define FAR_AWAY  (0x10000000000)
#define NCPUS	  4096u /* the most */
#define NSLOTS	  64u

static struct patched p;

static cpu_set_t usual_cpus;

/* The ways to learn the CPU that work here. */
static inline bool has_cpu_by(uint32_t by)
{
	unsigned a, b, c = 0, d;

	if (by == KX_TARGET_RDPID)
		return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & 1u << 22;
	return by != KX_TARGET_RSEQ || __rseq_size;
}

static inline int start(void **state)
{
	(void)state;
	sched_getaffinity(0, sizeof(usual_cpus), &usual_cpus);
	if (!patched_init(&p, 0x100000000000, FAR_AWAY, NSLOTS, NCPUS))
		return -1;
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	patched_free(&p);
	return sched_setaffinity(0, sizeof(usual_cpus), &usual_cpus);
}

/* Lets this thread run on one CPU until end(), and returns which. */
static inline unsigned stay_on_cpu(void)
{
	unsigned cpu;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	return cpu;
}

static inline const struct kx_target_loss *loss_of(uint32_t tid)
{
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++)
		if (p.rings->losses[i].tid == tid)
			return &p.rings->losses[i];
	return NULL;
}

static inline int start_large(void **state)
{
	(void)state;
	sched_getaffinity(0, sizeof(usual_cpus), &usual_cpus);
	return patched_init(&p, 0x100000000000, FAR_AWAY, 1 << 18,
			    (unsigned)sysconf(_SC_NPROCESSORS_CONF))
		       ? 0
		       : -1;
}

#endif
