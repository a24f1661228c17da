#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s, without root
# The version of a source tree, and `make dist`: always the same bytes, with the version inside.
. "$(dirname "$0")/../lib.sh"
unset MAKEFLAGS MAKELEVEL
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a

# A repository of a commit with this tree's files, those that are not committed yet included.
top=$TMP/top
mkdir "$top"
if [ -e .git ]; then
	git -c safe.directory="$PWD" ls-files -zco --exclude-standard
else
	find . -path './build*' -prune -o -type f ! -name .version -print0
fi | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done | tar c --null -T - | tar x -C "$top"
git -C "$top" init -q
git -C "$top" add -A
git -C "$top" commit -qm first
commit=$(git -C "$top" rev-parse --short=10 HEAD)

assert_eq "the version without a tag" "$("$top/scripts/version.sh" 9.8.7)" "9.8.7-g$commit"
echo >>"$top/README.md"
assert_eq "of a changed file" "$("$top/scripts/version.sh" 9.8.7)" "9.8.7-g$commit-dirty"
git -C "$top" checkout -q README.md
git -C "$top" tag v10.0
assert_eq "of a tag" "$("$top/scripts/version.sh" 9.8.7)" 10.0
git -C "$top" commit -q --allow-empty -m second
version=10.0-1-g$(git -C "$top" rev-parse --short=10 HEAD)
assert_eq "after a tag" "$("$top/scripts/version.sh" 9.8.7)" "$version"

run env TZ=UTC make -C "$top" --no-print-directory dist BUILD="$TMP/one"
assert_eq "make dist names the file" "$STATUS $OUT" "0 $TMP/one/kxray-$version.tar.gz"
# From another folder, of a copy whose files are newer, as if by another user with other settings.
git clone -q "$top" "$TMP/copy"
git config --file "$TMP/config" tar.umask user
run env -C / GIT_CONFIG_GLOBAL="$TMP/config" TZ=Asia/Tokyo HOME=/proc sh -c "umask 077; make -f '$TMP/copy/Makefile' dist BUILD='$TMP/two'"
assert_eq "make dist from another folder" "$STATUS" 0
assert_eq "the same bytes" "$(sha256sum <"$TMP/two/kxray-$version.tar.gz")" "$(sha256sum <"$TMP/one/kxray-$version.tar.gz")"

mkdir "$TMP/unpacked"
tar xzf "$TMP/one/kxray-$version.tar.gz" -C "$TMP/unpacked"
assert_eq "one folder" "$(ls -A "$TMP/unpacked")" "kxray-$version"
assert_eq "all files, and the version" "$(cd "$TMP/unpacked/kxray-$version" && find . -type f | sort)" \
	"$(cd "$top" && { find . -path ./.git -prune -o -type f -print && echo ./.version; } | sort)"
git -C "$TMP/unpacked" init -q
assert_eq "the version of a tarball" "$("$TMP/unpacked/kxray-$version/scripts/version.sh" 9.8.7)" "$version"
rm "$TMP/unpacked/kxray-$version/.version"
assert_eq "the version of a mere copy" "$("$TMP/unpacked/kxray-$version/scripts/version.sh" 9.8.7)" 9.8.7
run make -C "$TMP/unpacked/kxray-$version" dist
assert_eq "make dist of a tarball fails" "$STATUS" 2
assert_contains "and says why" "$ERR" "this is not a git checkout"

# What scripts/setup.sh installs to build is what the Debian package needs, but for what every Debian build has, and for tools of users.
needs=$(sed -n '/^Build-Depends:/,/^[A-Z]/s/^\(Build-Depends:\)\? //p' debian/control | tr ', ' '\n\n' | grep '^[a-z]' | grep -vx 'debhelper-compat' | sort)
installs=$(sed -n '/^	debian-build)/,/;;/p' scripts/setup.sh | grep -oE '[a-z][a-z0-9+-]+' | grep -vxE 'debian-build|echo|gcc|make|llvm' | sort)
assert_contains "packages of setup.sh" "$installs" libbpf-dev
assert_eq "packages that a Debian package is built with" "$needs" "$installs"
