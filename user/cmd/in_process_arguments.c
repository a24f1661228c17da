// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/in_process_arguments.h"

#include <errno.h>

/* What only BPF programs can do for every call; NULL: nothing. */
static const char *needs_bpf(const struct kx_recording_options *o)
{
	return o->min_duration_ns		     ? "--min-duration" :
	       o->max_depth			     ? "--depth" :
	       o->nargs || o->automatic_values	     ? "--args" :
	       o->results			     ? "--results" :
	       o->callers			     ? "--callers" :
	       o->count				     ? "--count" :
	       o->max_overhead > 0		     ? "--max-overhead" :
	       o->filters.which & KX_FILTER_COMM     ? "--comm" :
	       o->filters.which & KX_FILTER_UID	     ? "--uid" :
	       o->filters.which & KX_FILTER_CGROUP   ? "--cgroup" :
	       o->filters.which & KX_FILTER_CPU	     ? "--cpu" :
						       NULL;
}

/* Whether a condition is for all functions. */
static bool has_global_rule(const struct kx_record_arguments *a)
{
	for (size_t i = 0; i < a->o.nrules; i++)
		if (!a->rules[i].pattern)
			return true;
	return false;
}

int kx_in_process_check_arguments(const struct kx_record_arguments *a, struct kx_err *err)
{
	const struct kx_recording_options *o = &a->o;
	const char *option = has_global_rule(a) ? "--if" : needs_bpf(o);

	if (!o->in_process)
		return 0;
	if (o->all || o->command || o->npids != 1)
		return kx_err_set(err, -EINVAL,
				  "--in-process changes the code of one running process: give it with a single -p PID, without -a or a command");
	if (o->follow_exact)
		return kx_err_set(err, -EINVAL, "--in-process needs probes of single processes for children: give --follow without =exact");
	if (!o->select.ninclude)
		return kx_err_set(err, -EINVAL, "--in-process needs -f: which functions, as in -f '*'");
	/* first: --count sets exits, too */
	if (option)
		return kx_err_set(err, -EINVAL, "%s needs a BPF program at each call, and --in-process runs none: leave out one of them", option);
	if (o->select.exits)
		return kx_err_set(err, -EINVAL, "--in-process records exits at the functions' own instructions: leave out --exits");
	return 0;
}
