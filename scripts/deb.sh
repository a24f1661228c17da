#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `make deb`: builds a Debian package from the last commit, in FOLDER, checks it with lintian where that is
# installed, and prints its name:
#     scripts/deb.sh BASE FOLDER
set -eu
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL MFLAGS
mkdir -p "$2"
folder=$(realpath "$2")
command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null || {
	echo "deb: dpkg-buildpackage and dh are missing; install them with: apt-get install dpkg-dev debhelper" >&2
	exit 1
}
if [ -f .version ]; then
	mkdir -p "$folder/source"
	tar c --exclude=./build --exclude='./build-*' --exclude="./$2" . | tar x -C "$folder/source"
else
	rm -rf "$folder/source"
	mkdir "$folder/source"
	tar xzf "$(scripts/dist.sh "$1" "$folder")" -C "$folder/source" --strip-components=1
fi
rm -f "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo
(cd "$folder/source" && dpkg-buildpackage -b -us -uc -J >"$folder/log" 2>&1) || {
	tail -n 20 "$folder/log" >&2
	echo "deb: dpkg-buildpackage failed; $folder/log has all that it printed." >&2
	exit 1
}
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning --info "$folder"/*.changes >&2
fi
ls "$folder"/kxray_*.deb
