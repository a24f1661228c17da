#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# `make deb-check`: the Debian package on bare machines. In a new Debian root with the packages of Build-Depends
# only it is built; in another one, installed and used: version, doctor, a recording of a program and its report.
#     scripts/deb-check.sh BASE FOLDER [RELEASE]         default: bookworm. Needs root, debootstrap and a mirror.
# No test, because it takes minutes and the network. Everything is below FOLDER, whose roots are removed at the end.
set -eu
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL MFLAGS
release=${3:-bookworm}
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || {
	echo "deb-check: this needs root and debootstrap (apt-get install debootstrap)." >&2
	exit 1
}
mkdir -p "$2"
folder=$(realpath "$2")
roots="$folder/build-root $folder/run-root"
finish() {
	for root in $roots; do
		for mount in proc sys ''; do
			! mountpoint -q "$root/$mount" || umount -R "$root/$mount" || return
		done
		rm -rf --one-file-system "$root"
	done
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
in_root() { # NAME COMMAND...
	root=$folder/$1
	shift
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"
}
say() { echo "deb-check: $*"; }
logged() { # FILE COMMAND...
	log=$folder/$1
	shift
	"$@" >"$log" 2>&1 && return
	tail -n 20 "$log" >&2
	say "'$*' failed; $log has all that it printed." >&2
	exit 1
}

finish
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null |
	sed -nE 's/^(URIs:|deb) +(\[.*\] +)?([a-z]+:[^ ]*).*/\3/p' | grep -v security | head -n 1)
[ -n "$mirror" ] || {
	echo "deb-check: no mirror of Debian is in /etc/apt/sources.list or /etc/apt/sources.list.d/debian.sources." >&2
	exit 1
}
say "$release from $mirror"
logged debootstrap.log debootstrap --variant=minbase "$release" "$folder/build-root" "$mirror"
cp -a "$folder/build-root" "$folder/run-root"
for root in $roots; do
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --make-rslave "$root/sys"
done

say "building with the packages of Build-Depends"
mkdir "$folder/build-root/source"
tar xzf "$(scripts/dist.sh "$1" "$folder")" -C "$folder/build-root/source" --strip-components=1
logged build-dep.log in_root build-root sh -c 'apt-get update -q && cd /source && apt-get build-dep -q -y --no-install-recommends ./'
logged build.log in_root build-root sh -c 'cd /source && scripts/deb.sh 0 /deb'
cp "$folder"/build-root/deb/kxray_*.deb "$folder/run-root/"

say "installing and using it in a bare root"
logged install.log in_root run-root sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends /kxray_*.deb'
in_root run-root kxray --version
in_root run-root kxray doctor
in_root run-root kxray record -f 'libc.so*:malloc' -o /tmp/t.xray -- ls /
in_root run-root kxray report /tmp/t.xray
in_root run-root sh -c 'kxray report --json /tmp/t.xray | grep -q "\"name\": *\"malloc\""'
in_root run-root sh -c 'dpkg -L kxray | xargs ls -dl | grep -v ^d'
logged purge.log in_root run-root apt-get purge -q -y kxray
[ -z "$(find "$folder/run-root/usr" -name '*kxray*')" ] || {
	say "files of kxray are left after its removal"
	exit 1
}
say "done: the package builds, installs, works and can be removed"
