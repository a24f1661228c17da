#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 4 s
# Binaries that the path in /proc/PID/maps does not lead to: in another mount and PID namespace, deleted
# or replaced since the start. The recorded functions are those of the running program, with exact counts.
. "$(dirname "$0")/../lib.sh"

# make_program FOLDER LIBRARY_CALLS PADDING: a program that waits for a byte, calls work() 5000
# times and lib_work() of its own library LIBRARY_CALLS times, and prints the sum. PADDING
# moves its functions to other addresses.
make_program() {
	local dir=$1 calls=$2 padding=$3
	mkdir -p "$dir"
	cat >"$dir/lib.c" <<-END
		unsigned long lib_work(unsigned long n);
		unsigned long lib_padding(unsigned long n);
		unsigned long lib_padding(unsigned long n)
		{
			__asm__ volatile(".skip $padding, 0x90");
			return n;
		}
		unsigned long lib_work(unsigned long n) { return n * 3 + 1; }
	END
	cat >"$dir/app.c" <<-END
		#include <stdio.h>
		#include <unistd.h>
		unsigned long lib_work(unsigned long n);
		unsigned long padding(unsigned long n);
		unsigned long work(unsigned long n);
		unsigned long padding(unsigned long n)
		{
			__asm__ volatile(".skip $padding, 0x90");
			return n;
		}
		unsigned long work(unsigned long n) { return n * 5 + 1; }
		int main(void)
		{
			unsigned long sum = 0;
			char byte;

			puts("ready");
			fflush(stdout);
			if (read(0, &byte, 1) != 1)
				return 1;
			for (int i = 0; i < 5000; i++)
				sum += work(sum);
			for (int i = 0; i < $calls; i++)
				sum += lib_work(sum);
			printf("%lu\n", sum);
			return 0;
		}
	END
	gcc -O1 -fno-inline -shared -fPIC -o "$dir/libapp.so" "$dir/lib.c" &&
		gcc -O1 -fno-inline -o "$dir/app" "$dir/app.c" -L"$dir" -lapp -Wl,-rpath,'$ORIGIN' ||
		fail "the target" "cannot be compiled"
	echo g | "$dir/app" | tail -n 1 >"$dir/want"
}

# start NAME FD COMMAND...: its standard input is file descriptor FD; its pid is in $PID
start() {
	local name=$1 fd=$2
	shift 2
	mkfifo "$TMP/$name.in"
	"$@" <"$TMP/$name.in" >"$TMP/$name.out" 2>&1 7>&- 8>&- &
	PID=$!
	_pids+=("$PID")
	eval "exec $fd>\"$TMP/$name.in\""
	wait_for has_text ready "$TMP/$name.out" ||
		fail "$name: start" "$(cat "$TMP/$name.out")"
}

# Starts it in new namespaces; its files exist only there. The host's pid is in $PID.
start_contained() { # NAME FD SOURCE
	local unshare
	start "$1" "$2" unshare -m -p -f sh -c 'mount -t tmpfs none "$1" && cp "$2/app" "$2/libapp.so" "$1" &&
		cd "$1" && exec "$1/app"' sh "$TMP/private" "$3"
	unshare=$PID
	PID=$(cat "/proc/$unshare/task/$unshare/children")
	PID=${PID% }
	_pids+=("$PID")
}

record() { # PIDS
	: >"$TMP/rec.err"
	"$KXRAY" record -p "$1" -f work -f 'libapp.so:lib_work' --json -o "$TMP/t.xray" \
		>"$TMP/rec.json" 2>"$TMP/rec.err" 7>&- 8>&- &
	REC=$!
	_pids+=("$REC")
	wait_for started
}
started() { has_text 'kxray: recording' "$TMP/rec.err" || _is_over "$REC"; }

# check NAME WORK LIB_WORK: the expected calls of work() and lib_work()
check() {
	local name=$1 work=$2 lib_work=$3 status=0 tool
	wait_for _is_over "$REC" || kill "$REC"
	wait "$REC" || status=$?
	assert_eq "$name: status" "$status $(json "$TMP/rec.json" 'd["lost"]')" "0 0"
	[ "$status" = 0 ] || cat "$TMP/rec.err"
	"$KXRAY" report --json "$TMP/t.xray" >"$TMP/report"
	assert_eq "$name: counts" "$(json "$TMP/report" '[sum(f["count"] for f in d["functions"]
		if f["name"] == n and f["module"] == m)
		for n, m in (("work", "app"), ("lib_work", "libapp.so"))]')" "[$work, $lib_work]"
	for tool in $(llvm_xrays); do
		run "$tool" account -f csv -m "$TMP/t.xray.map" "$TMP/t.xray"
		assert_eq "$name: $tool account" "$(tr -d '"' <<<"$OUT" | awk -F, '
			$NF == "work" { work += $2 }
			$NF == "lib_work" { lib += $2 }
			END { print work, lib }')" "$work $lib_work"
	done
}

result() { # NAME DIR
	assert_eq "$1: the target's result" "$(tail -n 1 "$TMP/$1.out")" "$(cat "$2/want")"
}

make_program "$TMP/one" 3000 16
make_program "$TMP/two" 700 5008
mkdir "$TMP/private"

# Another mount and PID namespace

if unshare -m -p -f mount -t tmpfs none "$TMP/private" 2>"$TMP/why"; then
	start_contained contained 7 "$TMP/one"
	assert_eq "contained: its files are not here" "$(ls "$TMP/private")" ""
	run "$KXRAY" functions -p "$PID" -f work -f 'libapp.so:lib_work' --json
	assert_eq "contained: functions" "$(json "$TMP/run.out" 'sorted(f["name"] for f in d)')" \
		"['lib_work', 'work']"
	record "$PID"
	printf g >&7
	check contained 5000 3000
	result contained "$TMP/one"
	# The trace has the host's pid.
	assert_contains "contained: the id" "$("$KXRAY" dump "$TMP/t.xray" | head -n 20)" "$PID"

	# Two containers, with different programs under the same path
	start_contained first 7 "$TMP/one"
	first=$PID
	start_contained second 8 "$TMP/two"
	record "$first,$PID"
	printf g >&7
	printf g >&8
	check "two containers" 10000 3700
	result first "$TMP/one"
	result second "$TMP/two"
else
	skip "contained" "$(cat "$TMP/why")"
fi

# Deleted since the start

mkdir "$TMP/gone"
cp "$TMP/one/app" "$TMP/one/libapp.so" "$TMP/gone"
start deleted 7 "$TMP/gone/app"
rm -r "$TMP/gone"
record "$PID"
printf g >&7
check deleted 5000 3000
result deleted "$TMP/one"

# Replaced since the start, as by an upgrade: in the new files the functions have other addresses

mkdir "$TMP/upgraded"
cp "$TMP/one/app" "$TMP/one/libapp.so" "$TMP/upgraded"
start replaced 7 "$TMP/upgraded/app"
for file in app libapp.so; do
	cp "$TMP/two/$file" "$TMP/upgraded/$file.new"
	mv "$TMP/upgraded/$file.new" "$TMP/upgraded/$file"
done
record "$PID"
printf g >&7
check replaced 5000 3000
result replaced "$TMP/one"
