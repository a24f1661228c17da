#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Installs the packages needed to build (build), test (test), measure (bench) and run all hazards (hazards):
#     scripts/setup.sh [build] [fast] [test] [bench] [hazards]      default: build
# fast: the part of test that `make test TESTS=fast` needs.
#     scripts/setup.sh --check                     only checks whether kxray can be built here
# Debian and Ubuntu: through apt-get, with sudo if needed; if nothing is missing,
# it runs nothing and does not use the network. NOSETUP=1 skips it.
set -eu

packages() { # FAMILY-GROUP
	case $1 in
	debian-build)
		echo gcc make pkg-config clang llvm bpftool libbpf-dev libelf-dev libdw-dev libzydis-dev \
			libjansson-dev libiberty-dev liblzma-dev libseccomp-dev libzstd-dev zlib1g-dev libncurses-dev \
			libmicrohttpd-dev libdebuginfod-dev
		;;
	debian-fast)
		echo g++ libc6-dev libcmocka-dev libclang-rt-dev llvm-14 llvm-19 python3 \
			xz-utils gzip protobuf-compiler mandoc zsh fish git curl systemd systemtap-sdt-dev
		;;
	debian-test)
		packages debian-fast
		echo iproute2 redis-server redis-tools sqlite3 strace gdb valgrind zstd qemu-system-x86 busybox-static tmux prometheus chromium debuginfod dwz \
			clickhouse-server clickhouse-client postgresql
		;;
	debian-bench)
		echo linux-perf bpftrace uftrace trace-cmd python3 libpython3-dev libstdc++6 redis-server redis-tools \
			postgresql nginx-light apache2-utils
		;;
	debian-hazards) echo linux-perf bpftrace golang-go rustc musl-tools qemu-user ;;
	fedora-build)
		echo gcc make pkgconf clang llvm bpftool libbpf-devel elfutils-libelf-devel elfutils-devel \
			zydis-devel jansson-devel binutils-devel xz-devel libseccomp-devel libzstd-devel zlib-devel ncurses-devel \
			libmicrohttpd-devel elfutils-debuginfod-client-devel
		;;
	fedora-fast)
		echo gcc-c++ glibc-static libcmocka-devel compiler-rt python3 xz gzip protobuf-compiler mandoc zsh fish git curl systemd systemtap-sdt-devel
		;;
	fedora-test)
		packages fedora-fast
		echo iproute redis sqlite strace gdb valgrind zstd tmux golang-github-prometheus chromium elfutils-debuginfod dwz postgresql-server
		;;
	fedora-bench)
		echo perf bpftrace uftrace trace-cmd python3-devel libstdc++ redis postgresql-server postgresql-contrib nginx \
			httpd-tools
		;;
	fedora-hazards) echo perf bpftrace golang rust ;;
	*) die "unknown group '${1#*-}': take build, fast, test, bench, hazards or --check." ;;
	esac
}

say() { printf '%s\n' "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# Checks for the tools and headers, not for packages, so that it works on any distribution.
check() { # [HEADER...]
	missing=
	cc=${CC:-gcc} # may have arguments, as in "ccache gcc"
	headers="bpf/libbpf.h bpf/bpf_helpers.h libelf.h elfutils/libdwfl.h Zydis/Zydis.h jansson.h
		libiberty/demangle.h lzma.h seccomp.h zlib.h zstd.h curses.h microhttpd.h elfutils/debuginfod.h linux/bpf.h $1"
	for tool in "${cc%% *}" "${CLANG:-clang}" "${BPFTOOL:-bpftool}"; do
		command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
	done
	# Looking for headers needs a compiler.
	command -v "${cc%% *}" >/dev/null 2>&1 || headers=
	for header in $headers; do
		printf '#include <%s>\n' stdarg.h stddef.h stdint.h setjmp.h "$header" |
			$cc -E -x c - >/dev/null 2>&1 || missing="$missing $header"
	done
	[ -z "$missing" ] && return 0
	say "kxray cannot be built here yet: missing$missing; run 'scripts/setup.sh build'."
	return 1
}

if [ "${1:-}" = --check ]; then
	check ''
	exit
fi
[ "${NOSETUP:-}" = 1 ] && exit 0
[ $# -gt 0 ] || set -- build

[ "$(uname -m)" = x86_64 ] || die "kxray runs on x86-64 only, and this machine is $(uname -m)."

# In a subshell: os-release sets a lot of variables.
distribution=$(
	[ -r /etc/os-release ] && . /etc/os-release
	echo " ${ID:-} ${ID_LIKE:-} "
)
case $distribution in
*' debian '* | *' ubuntu '*) family=debian ;;
*' fedora '* | *' rhel '*) family=fedora ;;
*) family='' ;;
esac

wanted=
extra=
for group in "$@"; do
	case $group in test | fast) extra=cmocka.h ;; esac
	list=$(packages "${family:-debian}-$group")
	wanted="$wanted $list"
done

case $family in
debian) ;;
fedora)
	check "$extra" 2>/dev/null && exit 0
	die "something is missing; install it with: sudo dnf install$wanted"
	;;
*)
	check "$extra" 2>/dev/null && exit 0
	die "no package list for this distribution; install what corresponds to Debian's$wanted."
	;;
esac

# Ubuntu packages these two with its kernels.
case $distribution in
*' ubuntu '*) wanted=$(echo "$wanted" | sed 's/\<bpftool\>\|\<linux-perf\>/linux-tools-generic/') ;;
esac

missing=
for package in $wanted; do
	case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || :) in
	*' installed') ;;
	*) missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null ||
		die "these packages are missing, and installing needs root:$missing"
	sudo=sudo
fi
say "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
	$sudo env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 && return
	tail -n 15 "$log" >&2
	die "'$*' failed; see the lines above."
}
run apt-get update -q
# Releases other than Debian 12 have other LLVM versions: absent packages are listed and skipped.
present=
absent=
for package in $missing; do
	if apt-cache show "$package" >/dev/null 2>&1; then
		present="$present $package"
	else
		absent="$absent $package"
	fi
done
[ -z "$absent" ] || say "skipped, not packaged in this release:$absent"
# shellcheck disable=SC2086
[ -z "$present" ] || run apt-get install -q -y --no-install-recommends $present
