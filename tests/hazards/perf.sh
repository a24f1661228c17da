#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The hazards' targets under perf's uprobes, in a guest, for kernels without uprobe_events: each once, as a table.
#
#   tests/hazards/perf.sh [SERIES [OPTION of run.py...]]		default 6.12
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
series=${1:-6.12}
shift $(($# ? 1 : 0))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v perf >/dev/null || {
	echo "perf.sh: perf is not installed: install the package linux-perf" >&2
	exit 1
}

# Python, with what run.py imports
python3 - tests/hazards "$work/python" <<'END'
import concurrent.futures.thread, os, shutil, sys, sysconfig
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import hazards, argparse, fnmatch, json, re, select, signal, subprocess, tempfile, threading
home = sysconfig.get_path("stdlib")
files = {m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None)}
files |= {f"{home}/encodings/{name}" for name in os.listdir(home + "/encodings") if name.endswith(".py")}
for file in files:
    if file.startswith(home) and os.path.isfile(file):
        to = sys.argv[2] + file[len(home):]
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(file, to)
END

cat >"$work/guest" <<'END'
mount -t tracefs tracefs /sys/kernel/tracing
cd /k && BUILD=/k/build KXRAY=/bin/false PYTHON tests/hazards/run.py --ways perf OPTIONS
END
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
sed -i "s|PYTHON|$python|; s|OPTIONS|${*@Q}|" "$work/guest"

scripts/vm-run.sh --kernel "$series" --script "$work/guest" --smp 2 --mem 3G --timeout 7200 \
	--files "tests/hazards:/k/tests/hazards $BUILD/tests/hazards:/k/build/tests/hazards" \
	--files "$BUILD/tests/targets:/k/build/tests/targets" \
	--files "$(type -P perf):/usr/bin/perf $(type -P true):/usr/bin/true $python" \
	--files "$work/python:$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
