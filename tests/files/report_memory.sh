#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s, without root
# The memory of `kxray report` depends on the number of functions, not on that of events: ten times the events take at most
# a tenth more.
. "$(dirname "$0")/../lib.sh"

# report NAME: writes $TMP/NAME.json, prints "CALLS FUNCTIONS KILOBYTES"
report() {
	python3 - "$KXRAY" "$TMP/$1.xray" "$TMP/$1.json" <<-'END'
		import json, os, sys
		pid = os.fork()
		if not pid:
		    os.dup2(os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT, 0o600), 1)
		    os.execv(sys.argv[1], [sys.argv[1], "report", "--json", sys.argv[2]])
		_, status, used = os.wait4(pid, 0)
		with open(sys.argv[3]) as file:
		    report = json.load(file)
		print(report["calls"] if not status else -1, len(report["functions"]), used.ru_maxrss)
	END
}

for n in 1 10; do
	"$BUILD/tests/make_trace" write "$TMP/$n.xray" $((n * 2000000)) 4 200000 || fail "the trace" "it cannot be made"
done
read -r calls functions few < <(report 1)
assert_eq "calls" "$calls" 1000000
assert_between "functions" "$functions" 190000 200000
# a function has more than 64 bytes
assert_between "memory is that of kxray" "$few" 12000 1000000
read -r calls functions many < <(report 10)
assert_eq "calls of ten times the events" "$calls $functions" "10000000 200000"
assert_between "memory of ten times the events" "$((many * 100))" $((few * 50)) $((few * 110))
