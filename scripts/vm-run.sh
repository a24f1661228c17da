#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Boot a Debian kernel under qemu (plain emulation, no KVM), run a shell script in it and pass its
# output, exit status and files back.
#
#   scripts/vm-run.sh --kernel 6.1 --script FILE [--files "PATH[:GUEST] ..."] [--out DIR] ...
#
# How it works: the root file system is an initramfs made of busybox, the given files and the
# libraries they need. The kernel log goes to the first serial port, the script's output to the
# second one (our stdout), so that they do not mix. The exit status and /out come back as
# a tar archive that the guest writes onto a raw NVMe disk: unlike virtio and 9p, the NVMe driver is
# built into Debian's cloud kernels, so no kernel module is needed.
set -euo pipefail

usage()
{
	cat <<-'END'
	usage: vm-run.sh --kernel SERIES|VMLINUZ --script FILE [options]
	  --kernel K      a series for vm-kernel.sh (6.1, 6.12) or the path of a vmlinuz
	  --script FILE   run by busybox sh in the guest as root, in /
	  --files LIST    files and folders to take along, separated by blanks, with the shared
	                  libraries of each program; may be repeated. A relative PATH lies at /PATH
	                  in the guest, PATH:GUEST puts it at GUEST
	  --out DIR       copy the guest's /out/* to DIR afterwards
	  --log FILE      keep the kernel's log
	  --smp N         CPUs (2)
	  --mem SIZE      memory (1G)
	  --cpu MODEL     qemu's CPU model (max, without what emulation makes slow)
	  --append ARGS   more kernel arguments
	  --timeout SECS  for everything, boot included (120)
	exit status: the script's; 124 timed out, 125 the machine could not be run or died,
	2 wrong usage. Needs the packages qemu-system-x86 and busybox-static.
	END
}

die()
{
	echo "vm-run: $*" >&2
	exit 125
}

wrong()
{
	echo "vm-run: $*" >&2
	usage >&2
	exit 2
}

# Without 5-level page tables and fast string instructions: walking one level more, and a loop for each
# byte of "rep movsb", take a tenth of the emulation's time.
kernel='' script='' out='' log='' smp=2 mem=1G cpu=max,la57=off,erms=off,fsrm=off append='' limit=120
files=()
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--kernel | --script | --files | --out | --log | --smp | --mem | --cpu | --append | --timeout)
		[ $# -ge 2 ] || wrong "$1 wants a value"
		;;
	*) wrong "unknown option $1" ;;
	esac
	case $1 in
	--kernel) kernel=$2 ;;
	--script) script=$2 ;;
	--files)
		read -r -d '' -a more <<<"$2" || true
		files+=("${more[@]}")
		;;
	--out) out=$2 ;;
	--log) log=$2 ;;
	--smp) smp=$2 ;;
	--mem) mem=$2 ;;
	--cpu) cpu=$2 ;;
	--append) append=$2 ;;
	--timeout) limit=$2 ;;
	esac
	shift 2
done
[ -n "$kernel" ] || wrong "--kernel is missing"
[ -n "$script" ] || wrong "--script is missing"
[ -r "$script" ] || die "cannot read the script $script"

command -v qemu-system-x86_64 >/dev/null ||
	die "qemu-system-x86_64 is missing: install the package qemu-system-x86"
busybox=$(command -v busybox) || die "busybox is missing: install the package busybox-static"

here=$(dirname "$(readlink -f "$0")")
case $kernel in
*/*) vmlinuz=$kernel ;;
*) vmlinuz=$("$here/vm-kernel.sh" "$kernel") || exit 125 ;;
esac
[ -r "$vmlinuz" ] || die "cannot read the kernel $vmlinuz"

work=$(mktemp -d "${TMPDIR:-/tmp}/kxray-vm.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root

# Guest paths have no symbolic links in their folder: the guest has only the host's top-level
# ones (/lib -> usr/lib).
put()	# put HOST-FILE GUEST-PATH
{
	mkdir -p "$root$(dirname "$2")"
	cp -a "$1" "$root$2"
}

put_library()	# copies the real file, and a link to it under the name that the dynamic linker opens
{
	local real folder
	real=$(readlink -f "$1")
	folder=$(readlink -f "$(dirname "$1")")
	[ -e "$root$real" ] || put "$real" "$real"
	if [ "$folder/$(basename "$1")" != "$real" ]; then
		mkdir -p "$root$folder"
		ln -sfn "$real" "$root$folder/$(basename "$1")"
	fi
}

put_libraries_of()	# every path in ldd's output, including the program interpreter
{
	local library answer

	[ "$(head -c 4 "$1" | tr -d '\0')" = $'\x7fELF' ] || return 0
	answer=$(ldd "$1" 2>/dev/null) || return 0	# a static program or an object file
	if [[ $answer == *"not found"* ]]; then
		die "$1 needs libraries that are missing here: $(grep 'not found' <<<"$answer")"
	fi
	{ grep -o '/[^ ]*' <<<"$answer" || true; } | while read -r library; do
		put_library "$library"
		case $library in
		*/libc.so.6)
			# pthread_cancel and pthread_exit load it with dlopen, so ldd does not list it.
			if [ -e "${library%/*}/libgcc_s.so.1" ]; then
				put_library "${library%/*}/libgcc_s.so.1"
			fi
			;;
		esac
	done
}

mkdir -p "$root"
for link in bin sbin lib lib64; do
	if [ -L "/$link" ]; then
		mkdir -p "$root/$(readlink "/$link")"
		ln -s "$(readlink "/$link")" "$root/$link"
	else
		mkdir -p "$root/$link"
	fi
done
mkdir -p "$root"/{dev,proc,sys,tmp,out,root,etc,run,usr/bin,usr/sbin,var,.vm}
ln -s /tmp "$root/var/tmp"
put "$(readlink -f "$busybox")" /.vm/busybox
put_libraries_of "$busybox"
cp "$script" "$root/.vm/script"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'nobody:x:65534:65534:nobody:/tmp:/bin/sh' >>"$root/etc/passwd"

for item in ${files[@]+"${files[@]}"}; do
	source=${item%%:*}
	case $item in
	*:*) target=${item#*:} ;;
	*) target=$item ;;
	esac
	target=/${target#/}
	target=/${target#/./}
	target=/${target#/}
	[[ $target != */../* ]] || die "$item: give a place in the guest, as in $source:/some/where"
	[ -e "$source" ] || die "cannot read $source, named in --files"
	if [ -d "$source" ]; then
		mkdir -p "$root$target"
		cp -a "$source/." "$root$target/"
	else
		put "$(readlink -f "$source")" "$target"
	fi
	while IFS= read -r -d '' file; do
		put_libraries_of "$file"
	done < <(find -L "$source" -type f -print0)
done

# tracefs, debugfs and bpffs are not mounted: kxray must work without them. Their mount points exist
# (/sys/kernel/tracing, /sys/kernel/debug, /sys/fs/bpf), so that a script can mount them.
cat >"$root/init" <<'END'
#!/.vm/busybox sh
/.vm/busybox --install -s /.vm/bin 2>/dev/null
# For scripts that start with #!/bin/sh or #!/usr/bin/env, and for system().
[ -e /bin/sh ] || ln -s /.vm/bin/sh /bin/sh
[ -e /usr/bin/env ] || ln -s /.vm/bin/env /usr/bin/env
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/.vm/bin HOME=/root TERM=dumb
mount -t devtmpfs dev /dev
exec </dev/null >/dev/ttyS1 2>&1
stty -opost </dev/ttyS1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
chmod 1777 /tmp
ln -sfn /proc/self/fd /dev/fd
ip link set lo up
hostname vm
cd /
cut -d' ' -f1 /proc/uptime >/.vm/uptime
sh /.vm/script
echo $? >/.vm/status
waited=0
while [ ! -b /dev/nvme0n1 ] && [ $waited -lt 20 ]; do
	sleep 0.5
	waited=$((waited + 1))
done
tar -cf /dev/nvme0n1 -C / .vm/status .vm/uptime out || echo "vm-run: /out does not fit"
sync
reboot -f
END
chmod 755 "$root/init"
mkdir "$root/.vm/bin"

(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$work/initrd"
truncate -s 1G "$work/disk"

# One thread for all CPUs: with one per CPU, qemu sometimes executes stale code after the kernel has
# patched it (jump labels, probes), and a stale int3 crashes the guest.
# shellcheck disable=SC2054	# the commas are qemu's
command=(qemu-system-x86_64
	-accel tcg,thread=single -cpu "$cpu" -smp "$smp" -m "$mem"
	-nodefaults -display none -no-reboot
	-kernel "$vmlinuz" -initrd "$work/initrd"
	# loglevel 5: warnings with their stack trace, but no boot messages. Without self tests and start-up of
	# the kernel's cryptography, which nothing here uses and emulation makes slow.
	# On a busy machine the kernel would panic because its timer seems not to work (no_timer_check), and its
	# watchdog would report a boot that emulation makes slow as a lockup (nowatchdog).
	-append "console=ttyS0 quiet loglevel=5 panic=-1 no_timer_check nowatchdog cryptomgr.notests \
initcall_blacklist=load_system_certificate_list,jent_mod_init $append"
	-serial "file:$work/log" -serial stdio
	-drive "file=$work/disk,if=none,id=disk,format=raw,cache=unsafe"
	-device nvme,drive=disk,serial=out)

# qemu makes its stdout non-blocking, which would affect every process that shares ours; hence the pipe.
touch "$work/log"
code=0
timeout --foreground -k 5 "$limit" "${command[@]}" </dev/null 2>"$work/stderr" | cat || code=$?

sed -i 's/\r//g' "$work/log"
if [ -n "$log" ]; then
	cp "$work/log" "$log"
fi
if [ $code = 124 ] || [ $code = 137 ]; then
	echo "vm-run: timed out after $limit s; the end of the kernel's log:" >&2
	tail -n 30 "$work/log" >&2
	exit 124
fi
grep -v -e '^$' "$work/stderr" >&2 || true
if ! tar -xf "$work/disk" -C "$work" 2>"$work/stderr" || [ ! -s "$work/.vm/status" ]; then
	echo "vm-run: the machine ended without a result (qemu's status $code); the kernel's log:" >&2
	tail -n 100 "$work/log" >&2
	exit 125
fi
if grep -q -E 'BUG:|Oops|WARNING: CPU|general protection|soft lockup' "$work/log"; then
	echo "vm-run: the kernel reported errors while the script ran:" >&2
	tail -n 60 "$work/log" >&2
fi
if [ -n "$out" ]; then
	mkdir -p "$out"
	cp -R "$work/out/." "$out/"
fi
exit "$(cat "$work/.vm/status")"
