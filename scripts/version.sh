#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Prints the version of this source tree:
#     scripts/version.sh BASE
# in a tarball of `make dist` that of its file .version; in a git checkout the newest tag and the commits since
# (0.2.0-5-g1a2b3c4d5e), or without any tag BASE and the commit (0.1.0-g1a2b3c4d5e), "-dirty" if a file has changed; else BASE.
set -eu
cd "$(dirname "$0")/.."
base=$1
# Another user's checkout (sudo make install) is refused by git otherwise.
git() { command git -c safe.directory="$PWD" "$@" 2>/dev/null; }

if [ -f .version ]; then
	cat .version
elif [ -e .git ] && commit=$(git describe --always --abbrev=10 --dirty --exclude '*'); then
	tag=$(git describe --tags --abbrev=10 --dirty --match 'v[0-9]*') && echo "${tag#v}" || echo "$base-g$commit"
else
	echo "$base"
fi
