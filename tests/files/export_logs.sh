#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s, without root
# Logs of LLVM's own XRay runtime are exported as traces that llvm-xray accepts.
. "$(dirname "$0")/../lib.sh"
AGREE="python3 tests/readers/agree.py"

# Logs of LLVM's own runtime: many threads in small buffers, tail calls, arguments, events.
cat >"$TMP/logger.c" <<'END'
#include <pthread.h>
int __xray_log_select_mode(const char *);
int __xray_patch(void);
int __xray_log_init_mode(const char *, const char *);
int __xray_log_finalize(void);
int __xray_log_flushLog(void);
#define NOINLINE __attribute__((noinline))
NOINLINE int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline, xray_log_args(1), xray_always_instrument))
int args(long x) { return leaf((int)x); }
NOINLINE int tail(int x) { __asm__ volatile(""); return leaf(x + 2); }
NOINLINE int recurse(int n) { return n ? recurse(n - 1) + leaf(n) : 0; }
static void *work(void *a)
{
	long n = (long)a, s = 0;
	for (long i = 0; i < n; i++) {
		s += tail(i) + recurse(3) + args(i);
		if (i % 50 == 0)
			__xray_customevent("hello event", 11);
	}
	return (void *)s;
}
__attribute__((xray_never_instrument)) int main(int c, char **v)
{
	pthread_t t[4];
	if (c != 2 || __xray_log_select_mode("xray-fdr") ||
	    __xray_log_init_mode("xray-fdr", v[1]) != 2 || __xray_patch() != 1)
		return 2;
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], 0, work, (void *)(200 + 100 * i));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	__xray_log_finalize();
	__xray_log_flushLog();
	return 0;
}
END
# The loops make a fixed number of calls: 4 threads, 1400 rounds.
expected="{'args': 1400, 'leaf': 7000, 'recurse': 5600, 'tail': 1400, 'work': 4}"
tested=0
for clang in clang-14 clang-19; do
	if ! command -v "$clang" >/dev/null; then
		skip "logs of $clang" "it is not installed"
		continue
	fi
	"$clang" -O2 -pthread -w -fxray-instrument -fxray-instruction-threshold=1 -o "$TMP/logger" \
		"$TMP/logger.c" 2>"$TMP/clang.err" || fail "logs of $clang" "$(cat "$TMP/clang.err")"
	tested=1
	for config in buffer_size=1024:buffer_max=4000 buffer_size=16384:buffer_max=100; do
		label="log of $clang, $config"
		rm -f "$TMP"/log.*
		XRAY_OPTIONS="patch_premain=false xray_logfile_base=$TMP/log." \
			"$TMP/logger" "func_duration_threshold_us=0:$config" 2>/dev/null ||
			fail "$label" "the program ends with status $?"
		log=$(ls "$TMP"/log.*)
		run "$KXRAY" export -f csv -m "$TMP/logger" -o "$TMP/log.csv" "$log"
		assert_eq "$label: calls" "$(python3 -c 'import collections, csv, sys
rows = csv.DictReader(open(sys.argv[1], newline=""))
print(dict(sorted(collections.Counter(row["function"] for row in rows).items())))' \
			"$TMP/log.csv")" "$expected"
		# llvm-xray reads many buffers in a wrong order; with few buffers the order may be right.
		if [ "${config#*=}" = 1024:buffer_max=4000 ]; then
			for tool in $(llvm_xrays); do
				run "$tool" account -m "$TMP/logger" "$log"
				assert "$label: rejected by $tool" "it is accepted, so this proves nothing" \
					[ "$STATUS" != 0 ]
			done
		fi
		for version in 1 2 3 4 5; do
			run "$KXRAY" export -f xray --xray-version "$version" -m "$TMP/logger" \
				-o "$TMP/repaired.xray" "$log"
			assert_eq "$label: as version $version" "$STATUS $(od -An -tu2 -N2 \
				"$TMP/repaired.xray" | tr -d ' ')" "0 $version"
			assert_eq "$label: as version $version llvm-xray account says the same" \
				"$($AGREE account "$TMP/repaired.xray" "$TMP/logger" "$TMP/log.csv")" "the same"
		done
	done
done
[ "$tested" = 1 ] || fail "logs of LLVM's runtime" "no clang can make one"
