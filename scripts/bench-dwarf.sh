#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What it takes to record 1,000 functions with values by name, of a program with more than 300 MB of debug information:
#
#     scripts/bench-dwarf.sh [FOLDER]        default: a temporary one; one that is there already is used again
#
# Prints the bytes of debug information, and CPU time, time and memory of the whole recording. Needs root and g++. Making the
# program takes three minutes of CPU time.
set -eu
cd "$(dirname "$0")/.."
kxray=${KXRAY:-$PWD/build/kxray}
folder=${1:-}
if [ -z "$folder" ]; then
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
fi
[ -x "$folder/program" ] || scripts/gen-large-dwarf.py "$folder" 100 10500 >/dev/null
specs=()
for i in $(seq 0 999); do
	specs+=(-f "work_$i(req->hdr.len, count, thing->number_$((i / 10))_$((i % 10))) -> ret")
done
bytes=$(readelf -SW "$folder/program" | sed -n 's/.*\.debug_[a-z_]* *PROGBITS *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\).*/0x\1/p' | paste -sd+)
echo "bytes of debug information: $((bytes))"
/usr/bin/env time -f "CPU time: %U s + %S s; time: %e s; memory: %M kB" -o "$folder/time" \
	"$kxray" record --json -o "$folder/trace.xray" "${specs[@]}" -- "$folder/program" >"$folder/rec.json" 2>"$folder/rec.err" ||
	{ cat "$folder/rec.err"; exit 1; }
cat "$folder/time"
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print("functions:", d["functions"], "unknown values:", len(d.get("unknown_values", [])))' "$folder/rec.json"
