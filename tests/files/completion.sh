#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s, without root
# Completion: what kxray answers for a command line, and what bash, zsh and fish make of it.
. "$(dirname "$0")/../lib.sh"

# answer WORD...: what kxray answers if the last word is completed: "ADDS: WORD WORD ...". Nothing on stderr.
answer() {
	"$KXRAY" help --complete $#  kxray "$@" 2>&1 | cut -f 1 | tr '\n' ' ' | sed 's/ /: /; s/ $//'
}
functions_of() { nm "$1" | awk -v start="$2" '$2 ~ /[Tt]/ && index($3, start) == 1 { print $3 }' | sort; }

assert_eq "commands" "$(answer d)" "none: diff dump detach doctor"
assert_eq "all commands, and help" "$(answer '')" \
	"none: $("$KXRAY" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')help"
assert_eq "help" "$(answer help rec)" "none: record"
assert_eq "no such command" "$(answer nosuch '')" "files:"
for command in $("$KXRAY" help --complete 1 kxray '' | sed 1d | cut -f 1 | grep -vx help); do
	assert_eq "options of $command" "$("$KXRAY" help --complete 2 kxray "$command" -- | cut -f 1 | grep -o '^--[a-z0-9-]\+$' | sort)" \
		"$(sed -nE 's/^  (-., |    )(--[a-z0-9-]+).*/\2/p' <<<"$("$KXRAY" "$command" --help)" | sort -u)"
done
assert_eq "an option, short and long" "$(answer dump -)" "none: --map -m --json --help -h"
assert_eq "a choice" "$(answer record --clock '')" "none: auto kfunc ktime"
assert_eq "behind =" "$(answer record --clock=k)" "none: --clock=kfunc --clock=ktime"
assert_eq "which may be left out" "$(answer record --follow=)" "none: --follow=exact"
assert_eq "a key" "$(answer report --sort p)" "none: p50 p90 p99"
assert_eq "formats" "$(answer export -f s)" "none: speedscope"
assert_eq "a file as value" "$(answer record -o tr)" "files:"
assert_eq "a trace" "$(answer report tr)" "files:"
assert_eq "a program" "$(answer functions redis)" "programs:"
assert_eq "a command" "$(answer record -f x -- ls -)" "command: 5"
assert_eq "system calls" "$(answer record -a -f syscall:openat)" "none: syscall:openat syscall:openat2"
assert_eq "a user" "$(answer record -a --uid roo)" "none: root"

program=$TARGETS/counts
want=$(functions_of "$program" t)
assert "the program has functions" "none begins with t" test -n "$want"
assert_eq "functions of a program" "$(answer functions "$program" -f t)" "none: $(echo $want)"
assert_eq "also if it comes later" "$("$KXRAY" help --complete 3 kxray functions -f t "$program" | sed 1d | cut -f 1)" "$want"
assert_eq "functions of a command" "$("$KXRAY" help --complete 3 kxray record -f t -- "$program" | sed 1d | cut -f 1)" "$want"
background sleep 1000
pid=$PID
wait_for grep -qx sleep "/proc/$pid/comm"
assert_eq "a process" "$("$KXRAY" help --complete 3 kxray record -p "$pid" | tail -n +2)" "$pid	sleep"
assert_eq "the second of several" "$(answer record "--pid=1,$pid")" "none: --pid=1,$pid"
libc=$(awk '/libc\.so/ { n = split($NF, p, "/"); print p[n]; exit }' "/proc/$pid/maps")
assert_contains "modules of a process" " $(answer record -p "$pid" -f '') " " $libc: "
assert_eq "functions of a process's library" "$(answer record -p "$pid" -f 'libc.so*:getnamein')" "none: libc.so*:getnameinfo"
assert_eq "no such process" "$(answer record -p 4194305 -f 'x')" "none:"
assert_eq "no such file" "$(answer functions "$TMP/none" -f 'x')" "none:"
cp tests/fuzz/corpus/map/kxray "$TMP/t.xray.map"
assert_eq "functions of a trace" "$(answer report "$TMP/t.xray" -f '')" "none: 123foo::bar core::fmt::write foo::bar main malloc"

# in_bash WORD...: COMPREPLY after a TAB behind the last word, of COMP_WORDS as bash makes them
in_bash() {
	bash --norc -c '
		source "$1"
		COMP_LINE=$2 COMP_POINT=${#2}
		shift 2
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_kxray "$1" 2>&1
		printf "%s\n" "${COMPREPLY[@]}"' bash "$BUILD/completion/kxray.bash" "$@" | tr '\n' ' ' | sed 's/ $//'
}
k=$KXRAY
assert_eq "bash: a command" "$(in_bash "$k re" "$k" re)" "record report"
assert_eq "bash: an option" "$(in_bash "$k record --clo" "$k" record --clo)" "--clock"
assert_eq "bash: a value behind =" "$(in_bash "$k record --clock=k" "$k" record --clock = k)" "kfunc ktime"
assert_eq "bash: nothing behind =" "$(in_bash "$k record --clock=" "$k" record --clock =)" "auto kfunc ktime"
assert_eq "bash: a pattern with a module" \
	"$(in_bash "$k record -p $pid -f libc.so*:getnamein" "$k" record -p "$pid" -f 'libc.so*' : getnamein)" getnameinfo
assert_eq "bash: in quotes" "$(in_bash "$k record -p $pid -f 'libc.so*:getnamein" "$k" record -p "$pid" -f "'libc.so*:getnamein")" \
	"libc.so*:getnameinfo"
assert_eq "bash: a file" "$(cd "$TMP" && touch a.xray && in_bash "$k report a." "$k" report a.)" a.xray
assert_eq "bash: a file behind =" "$(cd "$TMP" && in_bash "$k record --output=a." "$k" record --output = a.)" a.xray
assert_eq "bash: a program" "$(in_bash "$k functions mkfif" "$k" functions mkfif)" mkfifo
assert_eq "bash: a command to run" "$(in_bash "$k record -- mkfif" "$k" record -- mkfif)" mkfifo

if command -v zsh >/dev/null; then
	cat >"$TMP/zsh" <<-'END'
		_describe() { print -rl -- "${(@P)2}" | sed 's/\([^\\]\):.*/\1/; s/\\:/:/g' }
		_files() { print -r -- "files $PREFIX" }
		compset() { PREFIX=${PREFIX#*=} }
		words=("$@") CURRENT=$# PREFIX=$@[-1]
		eval "_kxray() { $(<$script) }"
		_kxray
	END
	in_zsh() { script=$BUILD/completion/kxray.zsh zsh -f "$TMP/zsh" "$@" 2>&1 | tr '\n' ' ' | sed 's/ $//'; }
	assert_eq "zsh: a command" "$(in_zsh "$k" re)" "record report"
	assert_eq "zsh: a value" "$(in_zsh "$k" record --clock=k)" "--clock=kfunc --clock=ktime"
	assert_eq "zsh: a function" "$(in_zsh "$k" functions "$program" -f t)" "$(echo $want)"
	assert_eq "zsh: what is escaped" "$(in_zsh "$k" record -p "$pid" -f 'libc.so\*:getnamein')" "libc.so*:getnameinfo"
	assert_eq "zsh: a file behind =" "$(in_zsh "$k" record --output=a.)" "files a."
else
	skip "zsh" "it is not installed"
fi

if command -v fish >/dev/null; then
	in_fish() {
		HOME=$TMP PATH=$(dirname "$k"):$PATH fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$BUILD/completion/kxray.fish" "$1" \
			2>&1 | cut -f 1 | tr '\n' ' ' | sed 's/ $//'
	}
	assert_eq "fish: a command" "$(in_fish "kxray re")" "record report"
	assert_eq "fish: a value" "$(in_fish "kxray record --clock=k")" "--clock=kfunc --clock=ktime"
	assert_eq "fish: a function" "$(in_fish "kxray functions $program -f t")" "$(echo $want)"
	assert_eq "fish: what is escaped" "$(in_fish "kxray record -p $pid -f libc.so\\*:getnamein")" "libc.so*:getnameinfo"
	assert_eq "fish: a file" "$(in_fish "kxray report $TMP/a.")" "$TMP/a.xray"
	assert_eq "fish: a file behind =" "$(in_fish "kxray record --output=$TMP/a.")" "--output=$TMP/a.xray"
	assert_eq "fish: a command to run" "$(in_fish "kxray record -- mkfif")" mkfifo
else
	skip "fish" "it is not installed"
fi
