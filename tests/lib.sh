# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# For tests/live/*.sh and tests/vm/*.sh, at their top:
#     . "$(dirname "$0")/../lib.sh"
# A script reports by lines on stdout: "ok NAME", "not ok NAME: why" and
# "skip NAME: reason". It is started from the repository's root by tests/run.sh,
# but also works alone. This file defines:
#     BUILD, KXRAY   build folder and program, absolute
#     TARGETS        folder of the target programs
#     TMP            a folder of its own, removed at the end
set -u

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
KXRAY=${KXRAY:-$BUILD/kxray}
TARGETS=${TARGETS:-$BUILD/tests/targets}
TMP=$(mktemp -d "${TMPDIR:-/tmp}/kxray-test.XXXXXX")
export BUILD KXRAY TARGETS TMP
mkfifo "$TMP/.pause" # nobody writes to it

_pids=()
# Whether the process is still one of this script's: the number of one that has ended may be another's by now.
_is_ours() {
	local stat=
	read -r -d '' stat <"/proc/$1/stat"
	# shellcheck disable=SC2086
	set -- "$1" ${stat##*) }
	[ "${3:-}" = $$ ] || grep -qzx "TMP=$TMP" "/proc/$1/environ"
} 2>/dev/null
_cleanup() {
	local pid
	for pid in ${_pids[@]+"${_pids[@]}"}; do
		_is_ours "$pid" && kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap _cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Reasons and values are printed on one line of at most 600 characters.
_one_line() { tr '\n\t' '  ' <<<"$*" | cut -c 1-600; }

pass() { printf 'ok %s\n' "$1"; }
fail() { printf 'not ok %s: %s\n' "$1" "$(_one_line "${2:-}")"; }
# Only for something that the kernel or the machine lacks, not for a missing feature.
skip() { printf 'skip %s: %s\n' "$1" "$(_one_line "${2:-}")"; }

# assert NAME WHY COMMAND...: COMMAND must succeed
assert() {
	local name=$1 why=$2
	shift 2
	if "$@"; then pass "$name"; else fail "$name" "$why"; fi
}

# assert_eq NAME GOT WANT
assert_eq() {
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got '$2', want '$3'"; fi
}

# assert_between NAME GOT LOW HIGH: whole numbers, bounds included
assert_between() {
	if [[ $2 =~ ^[0-9]+$ ]] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then
		pass "$1"
	else
		fail "$1" "got '$2', want $3 to $4"
	fi
}

# assert_contains NAME TEXT PART
assert_contains() {
	case $2 in
	*"$3"*) pass "$1" ;;
	*) fail "$1" "'$3' is not in '$2'" ;;
	esac
}

# run COMMAND...: puts its output into $OUT and $ERR, its status into $STATUS
run() {
	STATUS=0
	"$@" >"$TMP/run.out" 2>"$TMP/run.err" </dev/null || STATUS=$?
	OUT=$(tr -d '\0' <"$TMP/run.out")
	ERR=$(tr -d '\0' <"$TMP/run.err")
}

# wait_for COMMAND...: repeats COMMAND until it succeeds. The limit (KX_TEST_WAIT seconds, default 300)
# only ends a hang, with status 1; a busy machine must not reach it. It waits by the shell itself: starting
# programs fifty times a second takes a tenth of a CPU, which the other tests need. So do has_text and _is_over.
wait_for() {
	local deadline=$((SECONDS + ${KX_TEST_WAIT:-300})) pause=0.02 n=0
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		read -r -t $pause <>"$TMP/.pause" || :
		# what takes long is looked at less often: some of these commands start programs
		[ $((++n)) != 10 ] || pause=0.1
	done
}

# beside_translators shared|exclusive: until this script ends, a probe in every process kills no program under valgrind or qemu-x86_64: for a script
# that makes such probes (shared), or runs such programs (exclusive). Scripts that run alone need it not.
beside_translators() {
	[ -z "${_translators:-}" ] || return 0
	exec {_translators}>"$BUILD/translators.lock"
	flock --"$1" "$_translators"
}

# background COMMAND...: its id in $PID; killed at the script's end if it still runs
background() {
	"$@" &
	PID=$!
	_pids+=("$PID")
}

# start_target NAME [ARG...]: starts build/tests/targets/NAME and waits until it is
# ready. Its pid is in $PID, its output in $TMP/NAME.out and .err. go_target writes
# to its standard input.
start_target() {
	local name=$1
	shift
	rm -f "$TMP/$name.in"
	mkfifo "$TMP/$name.in"
	: >"$TMP/$name.out"
	"$TARGETS/$name" "$@" <"$TMP/$name.in" >"$TMP/$name.out" 2>"$TMP/$name.err" &
	PID=$!
	_pids+=("$PID")
	# Stays open, so that the target does not read an end of file.
	exec {TARGET_IN}>"$TMP/$name.in"
	wait_for has_text ready "$TMP/$name.out" || fail "start of $name" "it did not say ready"
}

# go_target [BYTE]: sends a byte to the last started target; "g" (default) starts its work
go_target() { printf '%s' "${1:-g}" >&"$TARGET_IN"; }

# end_target PID: waits for its end; its status is in $STATUS, 124 if it had to be killed
end_target() {
	exec {TARGET_IN}>&-
	STATUS=0
	if wait_for _is_over "$1"; then
		wait "$1" || STATUS=$?
	else
		kill -KILL "$1"
		wait "$1" 2>/dev/null
		STATUS=124
	fi
}
_is_over() {
	local stat=
	read -r -d '' stat <"/proc/$1/stat"
	stat=${stat##*) }
	[ -z "$stat" ] || [ "${stat:0:1}" = Z ]
} 2>/dev/null

# is_asleep PID: succeeds if the process is in an interruptible sleep
is_asleep() {
	local stat=
	read -r -d '' stat <"/proc/$1/stat"
	stat=${stat##*) }
	[ "${stat:0:1}" = S ]
}

# has_text TEXT FILE: grep -qF without a process; for wait_for and small files
has_text() {
	local text=
	read -r -d '' text <"$2"
	[[ $text = *"$1"* ]]
}

# json FILE EXPRESSION: prints the value of the Python EXPRESSION, in which d is the document
json() {
	python3 -IS -c 'import json, sys
text = open(sys.argv[1]).read()
d = json.loads(text)
print(eval(sys.argv[2]))' "$1" "$2"
}

# llvm_xrays: paths of the llvm-xray versions here, one a line
llvm_xrays() {
	local tool
	for tool in /usr/lib/llvm-14/bin/llvm-xray /usr/lib/llvm-19/bin/llvm-xray; do
		[ -x "$tool" ] && echo "$tool"
	done
}

# vm_needs NAME: succeeds if virtual machines can be run here; otherwise reports NAME as skipped
vm_needs() {
	command -v qemu-system-x86_64 >/dev/null && command -v busybox >/dev/null && return 0
	skip "$1" "needs the packages qemu-system-x86 and busybox-static"
	return 1
}

# vm_each "SERIES..." GUEST CHECK FILES [OPTION...]: boots the kernel of each series and runs
# the shell script GUEST in it (a path; busybox sh, as root). FILES are copied into the guest, as
# "PATH:GUEST-PATH ..."; OPTIONs are passed to scripts/vm-run.sh (--smp 1). Then
# "CHECK SERIES FOLDER" is called, with the guest's /out in FOLDER, the script's
# output in $OUT, kernel warnings and errors in $ERR and its status in $STATUS. If the kernel
# cannot be fetched or crashes, "skip" or "not ok vm_SERIES_run" is printed and CHECK is not called. E.g.
#     vm_needs vm_mine || exit 0
#     check() { assert_eq "vm_$1_answer" "$(cat "$2/answer")" 42; }
#     echo '/kxray doctor >/out/doctor; echo 42 >/out/answer' >"$TMP/guest"
#     vm_each "${*:-6.1 6.12}" "$TMP/guest" check "$KXRAY:/kxray"
# tests/run.sh runs several scripts at once, so a guest must wait for conditions, never for a
# number of seconds.
vm_each() {
	local all=$1 guest=$2 check=$3 files=$4 series vmlinuz
	shift 4
	for series in $all; do
		if ! vmlinuz=$(scripts/vm-kernel.sh "$series" 2>"$TMP/why"); then
			skip "vm_$series" "$(tail -n 1 "$TMP/why")"
			continue
		fi
		rm -rf "$TMP/out-$series"
		run scripts/vm-run.sh --kernel "$vmlinuz" --timeout ${KX_VM_TIMEOUT:-1700} --files "$files" \
			--script "$guest" --out "$TMP/out-$series" "$@"
		case $STATUS in
		124 | 125) fail "vm_${series}_run" "status $STATUS: $OUT $ERR" ;;
		*) "$check" "$series" "$TMP/out-$series" ;;
		esac
	done
}
