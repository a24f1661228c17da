#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Print the path of a Debian cloud kernel image of a series, fetching it once.
#
#   scripts/vm-kernel.sh [--refresh] SERIES          SERIES is 6.1, 6.12, ...
#
# The package is only downloaded and unpacked, never installed: installing a kernel would build an
# initramfs and touch the boot loader of the machine that runs the tests. The image is kept in
# $KXRAY_VM_CACHE (default ${XDG_CACHE_HOME:-/var/tmp}/kxray-vm-UID), so that later runs need no
# network; --refresh looks for a newer one. `config` and `release` are in the same folder as `vmlinuz`.
set -euo pipefail

die()
{
	echo "vm-kernel: $*" >&2
	exit 1
}

usage()
{
	echo "usage: vm-kernel.sh [--refresh] SERIES     (SERIES is 6.1, 6.12, ...)" >&2
	exit 2
}

refresh=0
if [ "${1-}" = --refresh ]; then
	refresh=1
	shift
fi
[ $# = 1 ] || usage
series=$1
[[ $series =~ ^[0-9]+\.[0-9]+$ ]] || usage

cache=${KXRAY_VM_CACHE:-${XDG_CACHE_HOME:-/var/tmp}/kxray-vm-$(id -u)}
kernel=$cache/linux-$series
if [ $refresh = 0 ] && [ -s "$kernel/vmlinuz" ]; then
	echo "$kernel/vmlinuz"
	exit 0
fi

# The signed images have names without a suffix; -unsigned and -dbg are other packages.
newest()
{
	apt-cache search --names-only "^linux-image-${series/./\\.}\\.[0-9].*-cloud-amd64\$" |
		cut -d' ' -f1 | sort -V | tail -n 1
}

command -v apt-get >/dev/null || die "apt-get is missing: kernels come from Debian's packages;" \
	"put one at $kernel/vmlinuz by hand"
# Outdated package lists contain kernels that the archive no longer has.
update()
{
	[ "$(id -u)" = 0 ] && apt-get update -q >/dev/null 2>&1
}

package=$(newest)
if [ -z "$package" ] && update; then
	package=$(newest)
fi
[ -n "$package" ] || die "apt offers no linux-image-$series.*-cloud-amd64: run 'apt-get update'" \
	"(bookworm-backports or bookworm-security offer 6.12 on Debian 12)"

mkdir -p "$cache" || die "cannot create the cache folder $cache: name another in KXRAY_VM_CACHE"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
# As root, apt downloads as the user _apt and warns if that user cannot enter the folder.
chmod 755 "$work"
if [ "$(id -u)" = 0 ]; then
	chown _apt "$work" 2>/dev/null || true
fi
download()
{
	(cd "$work" && apt-get download -q "$package" >apt.log 2>&1)
}
if ! download; then
	if update; then
		package=$(newest)
	fi
	download || die "cannot download $package: $(tail -n 1 "$work/apt.log")"
fi
dpkg-deb -x "$work"/linux-image-*.deb "$work/x" || die "cannot unpack $package"

mkdir "$work/new"
mv "$work"/x/boot/vmlinuz-* "$work/new/vmlinuz"
mv "$work"/x/boot/config-* "$work/new/config"
echo "${package#linux-image-}" >"$work/new/release"
chmod -R a+rX "$work/new"

# Two runs may download at once: the second one finds the folder and keeps it.
if [ $refresh = 1 ]; then
	rm -rf "$kernel"
fi
mv -T "$work/new" "$kernel" 2>/dev/null || [ -s "$kernel/vmlinuz" ] ||
	die "cannot put the kernel into $kernel"
echo "$kernel/vmlinuz"
