#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 60 s
#
# What works on which kernel: compares the README's table with the findings here. 6.1 and 6.12 are tested
# in virtual machines, there without the rows that other tests prove (table.sh); the last column is the
# kernel of the machine on which the README's figures were measured, and is tested only if that kernel
# series runs here.
#
#   tests/vm/matrix.sh [--write]      --write puts the findings into the README (make kernels);
#                                     it tries everything, in the virtual machines too
write=0 part=some
[ "${1-}" = --write ] && write=1 part=all
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh
vm_needs vm_matrix || exit 0

HOST_SERIES=6.18
mkdir "$TMP/found"

# collect SERIES FOLDER: keeps the guest's findings
collect() {
	assert_eq "vm_$1_run" "$STATUS" 0
	assert_eq "vm_$1_kernel_log" "$ERR" ''
	cp "$2/found" "$TMP/found/$1"
	sed "s/^/# $1: /" "$2/why"
}
cat >"$TMP/guest" <<END
mkdir /tmp/scratch
sh /matrix_try.sh /kxray /targets /tmp/scratch $part >/out/found 2>/out/why
END
files="$KXRAY:/kxray tests/vm/matrix_try.sh:/matrix_try.sh"
for target in counts kernelcalls tree tree-child treeplug.so; do
	files+=" $TARGETS/$target:/targets/$target"
done
vm_each "6.1 6.12" "$TMP/guest" collect "$files" --smp 1
if [ "$(uname -r | cut -d. -f1-2)" = $HOST_SERIES ] && [ "$(id -u)" = 0 ]; then
	mkdir "$TMP/scratch"
	sh tests/vm/matrix_try.sh "$KXRAY" "$TARGETS" "$TMP/scratch" >"$TMP/found/$HOST_SERIES" \
		2>"$TMP/why"
	sed "s/^/# $HOST_SERIES: /" "$TMP/why"
fi

cat >"$TMP/table.py" <<'END'
"""table.py FOUND README WRITE PROVEN: compares or rewrites the README's table, by column. PROVEN: the
rows, one a line, that may be missing in what was found in virtual machines"""
import os, sys
found_folder, readme, write, proven = sys.argv[1:]
text = open(readme, encoding="utf-8").read()
begin, end = "<!-- kernels: written by make kernels -->\n", "<!-- kernels end -->\n"
if begin not in text or end not in text:
    sys.exit("the README has no place for the table")
head, rest = text.split(begin)
old, tail = rest.split(end)
columns = ["6.1", "6.12", "6.18"]
documented, order = {c: {} for c in columns}, []
for line in old.splitlines()[2:]:
    cells = [c.strip() for c in line.strip("|").split("|")]
    order.append(cells[0])
    for column, cell in zip(columns, cells[1:]):
        documented[column][cells[0]] = cell
found = {c: {} for c in columns}
for column in columns:
    path = f"{found_folder}/{column}"
    if not os.path.exists(path):
        continue
    for line in open(path, encoding="utf-8"):
        what, answer = line.strip().rsplit(": ", 1)
        found[column][what] = {"no": "–"}.get(answer, answer)
if write == "1":
    rows = list(dict.fromkeys(w for c in columns for w in found[c])) or order
    table = "| | Linux 6.1 (Debian 12) | 6.12 (backports) | 6.18 (without kprobes) |\n|---|---|---|---|\n"
    for row in rows:
        cells = [(found[c] or documented[c]).get(row, "?") for c in columns]
        table += f"| {row} | " + " | ".join(cells) + " |\n"
    open(readme, "w", encoding="utf-8").write(head + begin + table + end + tail)
    sys.exit()
for column in columns:
    if not found[column]:
        print(f"skip README's table, {column}: this kernel is not here")
        continue
    left_out = set() if column == "6.18" else set(proven.splitlines()) - set(found[column])
    wrong = [f"{w}: {found[column].get(w)} found, README has {documented[column].get(w)}"
             for w in {**found[column], **documented[column]}
             if w not in left_out and found[column].get(w) != documented[column].get(w)]
    print(f"not ok README's table, {column}: {'; '.join(wrong)}" if wrong
          else f"ok README's table, {column}")
END
while read -r script row; do
	assert "a test proves '$row'" "tests/vm/$script.sh does not use documented" \
		grep -q documented "tests/vm/$script.sh"
done <<<"$proven_rows"
python3 "$TMP/table.py" "$TMP/found" README.md $write "$(cut -d' ' -f2- <<<"$proven_rows")" ||
	fail "README's table" "not compared"
[ $write = 0 ] || sed -n '/<!-- kernels: /,/<!-- kernels end/p' README.md
