# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# For top.sh and in_process.sh, after lib.sh: kxray beside the target `counts` in a guest.

# guest_beside_counts NAME BEGUN COMMAND: writes $TMP/guest, which runs `/kxray COMMAND`, with the target's id in $target, and lets the target go
# when kxray has printed BEGUN. Its outputs are /out/NAME.json and /out/NAME.err, its status is in /out/status.
guest_beside_counts()
{
	cat >"$TMP/guest" <<-END
		mkfifo /in
		/counts </in >/out/counts.out &
		target=\$!
		exec 3>/in
		until grep -q ready /out/counts.out; do sleep 0.1; done
		/kxray $3 >/out/$1.json 2>/out/$1.err &
		kxray=\$!
		until grep -q 'kxray: $2 ' /out/$1.err || ! kill -0 \$kxray 2>/dev/null; do sleep 0.1; done
		printf g >&3
		wait \$kxray
		echo \$? >/out/status
	END
}
