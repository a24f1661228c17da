#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `make dist`: writes the last commit's files to FOLDER/kxray-VERSION.tar.gz and prints that name:
#     scripts/dist.sh BASE FOLDER
# The bytes depend on the commit only: times are the commit's, owners and modes are fixed, gzip stores no name or time.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$2"
folder=$(realpath "$2")
git() { command git -c safe.directory="$PWD" "$@"; }

[ -e .git ] || {
	echo "dist: this is not a git checkout; the tarball that it comes from is what 'make dist' makes." >&2
	exit 1
}
full=$(scripts/version.sh "$1")
version=${full%-dirty}
[ "$full" = "$version" ] || echo "dist: changes that are not committed are left out." >&2
dir=$(mktemp -d "${TMPDIR:-/tmp}/kxray-dist.XXXXXX")
trap 'rm -rf "$dir"' EXIT
echo "$version" >"$dir/.version"
chmod 644 "$dir/.version"
git -c tar.umask=0022 archive --format=tar --prefix="kxray-$version/" --add-file="$dir/.version" HEAD >"$dir/tar"
gzip -9n <"$dir/tar" >"$dir/tar.gz"
mv "$dir/tar.gz" "$folder/kxray-$version.tar.gz"
echo "$folder/kxray-$version.tar.gz"
