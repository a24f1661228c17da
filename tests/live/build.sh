#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 18 s
# The build from a fresh copy: other folders and flags, install, manual; help and usage errors of the program.
. "$(dirname "$0")/../lib.sh"
top=$PWD
unset MAKEFLAGS MAKELEVEL

run scripts/check-vmlinux.sh
assert_eq "kernel types fit this kernel's BTF" "$STATUS $ERR" "0 "

sed 's/pid_t tgid;/long tgid;/' vmlinux/vmlinux.h >"$TMP/vmlinux.h"
mkdir -p "$TMP/copy/scripts" "$TMP/copy/vmlinux"
cp scripts/check-vmlinux.sh "$TMP/copy/scripts"
mv "$TMP/vmlinux.h" "$TMP/copy/vmlinux"
run "$TMP/copy/scripts/check-vmlinux.sh"
assert_eq "a wrong type is found" "$STATUS" 1
assert_contains "and named" "$OUT" task_struct.tgid

# From another folder, into a new build folder, with a read-only home. -O0, since the default flags are
# built all the time; three objects, since each rule is for all of its kind.
objects=("$TMP"/build/user/{main,base/err,cmd/cmd}.o)
run env -C / HOME=/proc make -C "$top" BUILD="$TMP/build" CFLAGS=-O0 "${objects[@]}"
assert_eq "make -C with a read-only home" "$STATUS" 0
assert_eq "it makes what was asked for" "$(ls "${objects[@]}" 2>/dev/null | wc -l)" 3
run make BUILD="$TMP/build" CFLAGS=-O0 "${objects[@]}"
assert_eq "a second make does nothing" "$(grep -v 'is up to date' <<<"$OUT")" ""
run make BUILD="$TMP/build" CFLAGS=-O0 VERSION=1.2.3-test "${objects[@]}"
assert_eq "another version compiles only what has it" "$(grep '^  CC' <<<"$OUT")" "  CC       user/main.o"
assert_eq "and the object has it" "$(grep -ac '1\.2\.3-test' "$TMP/build/user/main.o")" 1
touch "$TMP/stamp"
run make BUILD="$TMP/build" CFLAGS='-O1 -g' "$TMP/build/user/base/err.o"
assert_eq "other flags rebuild" "$(find "$TMP/build/user/base/err.o" -newer "$TMP/stamp")" \
	"$TMP/build/user/base/err.o"
run make BUILD="$TMP/build" V=1 CFLAGS='-O1 -g' -W user/base/err.h -n
assert_contains "a header rebuilds what includes it" "$OUT" "user/cmd/cmd.o"

# -o: other tests run what is in $BUILD, which may have been built with other flags than make's own
run make BUILD="$BUILD" -o all install DESTDIR="$TMP/root" PREFIX=/usr
assert_eq "make install" "$STATUS" 0
installed=$(printf './usr/%s\n' bin/kxray share/bash-completion/completions/kxray share/zsh/site-functions/_kxray \
	share/fish/vendor_completions.d/kxray.fish lib/kxray/flight lib/kxray/push lib/systemd/system/kxray-flight@.service \
	share/kxray/clickhouse/{distributed,schema,questions}.sql share/kxray/clickhouse/load.sh
	for page in user/man/*.in; do page=${page##*/} page=${page%.in} && echo "./usr/share/man/man${page##*.}/$page"; done)
assert_contains "manual pages are among them" "$installed" man1/kxray-record.1
assert_eq "what is installed" "$(cd "$TMP/root" && find . -type f | sort)" "$(sort <<<"$installed")"
run "$TMP/root/usr/bin/kxray" --help
assert_eq "the installed program runs" "$STATUS" 0
run make BUILD="$BUILD" uninstall DESTDIR="$TMP/root" PREFIX=/usr
assert_eq "make uninstall leaves nothing" "$(find "$TMP/root" -type f)" ""

run make help
for target in demo test bench install uninstall clean help; do
	assert_contains "make help names $target" "$OUT" "
  $target "
done

run env CC=no-such-compiler scripts/setup.sh --check
assert_eq "a missing compiler is an error" "$STATUS" 1
assert_eq "in one sentence that names it" "$ERR" \
	"setup: kxray cannot be built here yet: missing no-such-compiler; run 'scripts/setup.sh build'."

run "$KXRAY"
assert_eq "no command: wrong usage" "$STATUS" 2
run "$KXRAY" recrod
assert_eq "unknown command: wrong usage" "$STATUS" 2
assert_contains "it is named" "$ERR" "'recrod'"
run "$KXRAY" help
assert_eq "help" "$STATUS" 0
for command in record report export dump functions detach doctor; do
	assert_contains "help names $command" "$OUT" "
  $command "
	run "$KXRAY" "$command" --help
	assert_eq "$command --help" "$STATUS $ERR" "0 "
	assert_contains "it shows its usage" "$OUT" "kxray $command"
	assert_eq "kxray help $command is the same" "$("$KXRAY" help "$command")" "$OUT"
	run "$KXRAY" "$command" --no-such-option
	assert_eq "$command: unknown option: wrong usage" "$STATUS" 2
	assert_contains "it is named" "$ERR" "no-such-option"
	run "$KXRAY" help
done
STATUS=0
"$KXRAY" --help >/dev/full 2>"$TMP/err" || STATUS=$?
assert_eq "full disk: status" "$STATUS" 1
assert_contains "full disk: message" "$(cat "$TMP/err")" "No space left"
