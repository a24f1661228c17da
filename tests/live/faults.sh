#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s
# --faults: each page that a target touches first, with its address, access and function.
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/touch.c" <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 64
#define PAGE 4096L

static volatile char *map;
static int zero;

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt + u.ru_majflt;
}

__attribute__((noinline)) long write_pages(void)
{
	long before = faults();

	for (int i = 0; i < PAGES; i++)
		map[i * PAGE + i] = 1;
	return faults() - before;
}

__attribute__((noinline)) long read_pages(void)
{
	long before = faults();
	char sum = 0;

	for (int i = 0; i < PAGES; i++)
		sum += map[(PAGES + i) * PAGE];
	*map = sum;
	return faults() - before;
}

__attribute__((noinline)) long kernel_writes(void)
{
	long before = faults();

	for (int i = 0; i < PAGES; i++)
		if (read(zero, (char *)map + (2 * PAGES + i) * PAGE, 1) != 1)
			abort();
	return faults() - before;
}

int main(void)
{
	long w, r, k;

	zero = open("/dev/zero", O_RDONLY);
	map = mmap(NULL, 3 * PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)map, 3 * PAGES * PAGE, MADV_NOHUGEPAGE);
	faults(); /* resolves what is resolved at the first call */
	w = write_pages();
	r = read_pages();
	k = kernel_writes();
	printf("%ld %ld %ld %ld\n", (long)map, w, r, k);
	return 0;
}
C
cc -O2 -g -o "$TMP/touch" "$TMP/touch.c" || { fail 'compile the target'; exit; }
"$KXRAY" record --faults -f '*_pages' -f kernel_writes -o "$TMP/t.xray" -- "$TMP/touch" >"$TMP/out" 2>"$TMP/err"
assert_eq recorded $? 0
for format in chrome csv perfetto; do
	"$KXRAY" export -f $format -o "$TMP/t.$format" "$TMP/t.xray" >>"$TMP/log" 2>>"$TMP/err" ||
		fail "export $format" "$(tail -1 "$TMP/err")"
done
# its own format again: the notes stay as they were
"$KXRAY" export -f xray -o "$TMP/again.xray" "$TMP/t.xray" 2>>"$TMP/err"
assert_eq 'export xray' "$("$KXRAY" dump "$TMP/again.xray" | grep -o 'kxray:fault.*' | md5sum)" \
	"$("$KXRAY" dump "$TMP/t.xray" | grep -o 'kxray:fault.*' | md5sum)"
"$KXRAY" dump "$TMP/t.xray" >"$TMP/dump"

python3 - "$TMP" <<'P'
import csv, json, re, sys

folder = sys.argv[1]
start, *counts = map(int, open(folder + '/out').read().split())
# (address, write, execute, kernel, function), of the target's mapping
want = [(start + i * 4096 + i, 1, 0, 0, 'write_pages') for i in range(64)]
want += [(start + (64 + i) * 4096, 0, 0, 0, 'read_pages') for i in range(64)]
want += [(start + (128 + i) * 4096, 1, 0, 1, 'kernel_writes') for i in range(64)]

def check(name, got, expected):
    print(f'ok {name}' if got == expected else f'not ok {name}: got {str(got)[:200]}, want {str(expected)[:200]}')

def of_mapping(faults):
    return [f for f in faults if start <= f[0] < start + 192 * 4096]

def fault(values, function):
    return (int(values['address'], 16), int(values['write']), int(values['execute']), int(values['kernel']), function)

check('getrusage counts the same faults', counts, [64, 64, 64])
dumped = []
for line in open(folder + '/dump'):
    m = re.search(r'"kxray:fault (.*)"(?: in (\w+))?$', line)
    if m:
        dumped.append(fault(json.loads(m[1].replace('\\"', '"')), m[2]))
check('dump', of_mapping(dumped), want)
with open(folder + '/t.csv', newline='') as f:
    rows = [r for r in csv.DictReader(f) if r['how'] == 'fault']
listed = [fault(dict(v.split('=') for v in r['args'].split()), r['function'] or None) for r in rows]
check('csv', listed, dumped)
events = json.load(open(folder + '/t.chrome'))['traceEvents']
shown = [fault(e['args'], e['args'].get('function')) for e in events if e.get('name') == 'fault']
check('chrome', shown, dumped)
check('instants', {e['ph'] for e in events if e.get('name') == 'fault'}, {'i'})
raw = open(folder + '/t.perfetto', 'rb').read()
check('perfetto', [raw.count(b'0x%x' % a[0]) >= 1 for a in want], [True] * 192)
P

"$KXRAY" record -f '*_pages' -o "$TMP/without.xray" -- "$TMP/touch" >/dev/null 2>&1
assert_eq 'none without --faults' "$("$KXRAY" dump "$TMP/without.xray" | grep -c kxray:fault)" 0
"$KXRAY" record --count --faults -f '*_pages' -- "$TMP/touch" >/dev/null 2>"$TMP/err"
assert_eq '--count refuses it' "$? $(grep -c 'leave out --faults' "$TMP/err")" '2 1'
