#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s, without root
# The page of export -f html in a real browser: its numbers are those of the report, its script runs under its own policy,
# hostile names stay text, a million events are shown whole and more are merged; and the committed page is what
# `make html-assets` makes of its sources.
. "$(dirname "$0")/../lib.sh"

# The committed page

assert_between "size of the page without data" "$(stat -c %s exporters/html/page.html)" 20000 153600
fresh_page() {
	if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
		skip "page made anew" "npm is not installed"
	elif ! make -s html-assets NPM_FOLDER="$TMP/npm" PAGE="$TMP/page.html" PAGE_LICENSES="$TMP/LICENSES" >"$TMP/npm.log" 2>&1; then
		if [ -d "$TMP/npm/node_modules/esbuild" ]; then
			fail "page made anew" "$(tail -n 3 "$TMP/npm.log")"
		else
			skip "page made anew" "npm cannot install here: $(grep -m1 'npm error' "$TMP/npm.log")"
		fi
	else
		assert "page made anew: the same bytes" "run make html-assets" cmp -s "$TMP/page.html" exporters/html/page.html
		assert "licences made anew: the same bytes" "run make html-assets" cmp -s "$TMP/LICENSES" exporters/html/LICENSES
	fi
}
fresh_page
# Each package is pinned by its hash, and no registry's address is written down.
assert_eq "package-lock.json: packages without integrity, addresses" "$(python3 - exporters/html/page/package-lock.json <<'END'
import json, sys
text = open(sys.argv[1]).read()
packages = {k: v for k, v in json.loads(text)["packages"].items() if k}
print(len(packages) > 10, [k for k, v in packages.items() if not v.get("integrity", "").startswith("sha512-")],
      "resolved" in text, "://" in text.replace("https://opencollective.com", ""))
END
)" "True [] False False"

# In Chromium

if ! command -v chromium >/dev/null; then
	skip "in Chromium" "it is not installed"
	exit
fi

# dom FILE HASH: prints the document as it is once its script has nothing more to do. What the browser prints, a
# violation of the page's policy too, is in $TMP/console.
dom() {
	chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$TMP/chromium" --enable-logging=stderr \
		--virtual-time-budget=60000 --dump-dom "file://$1#$2" 2>"$TMP/browser"
	grep -a ':CONSOLE' "$TMP/browser" >>"$TMP/console"
}
: >"$TMP/console"

# numbers LABEL TRACE [OPTION...]: the page's numbers are the report's; leaves the page's in $TMP/page.json
numbers() {
	local label=$1 trace=$2
	shift 2
	run "$KXRAY" export -f html "$@" -o "$TMP/page.html" "$trace"
	assert_eq "$label: export" "$STATUS" 0
	run "$KXRAY" report --json "${@/#--function/-f}" "$trace"
	cp "$TMP/run.out" "$TMP/report.json"
	dom "$TMP/page.html" json >"$TMP/dom.html"
	assert_eq "$label: the page's numbers are the report's" "$(python3 - "$TMP" <<'END'
import html, json, re, sys
folder = sys.argv[1]
report = json.load(open(folder + "/report.json"))
found = re.search(r'<pre id="json">(.*?)</pre>', open(folder + "/dom.html").read(), re.DOTALL)
page = json.loads(html.unescape(found.group(1))) if found else {"functions": []}
json.dump(page, open(folder + "/page.json", "w"))
KEYS = ("name", "module", "count", "open", "no_exit", "total_ns", "self_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")
rows = [sorted(tuple(f[key] for key in KEYS) for f in side["functions"]) for side in (page, report)]
wrong = [key for key in ("events", "lost", "calls", "repaired", "orphans", "open") if page.get(key) != report[key]]
wrong += [f["name"] for f in page["functions"] if f["in_histogram"] != f["count"] - f["no_exit"] - f["open"]]
if not page["functions"] or page["page"]["calls_in_timeline"] != page["calls"] or \
        page["page"]["calls_in_flame"] != page["calls"]:
    wrong.append("sums")
print(wrong or ("the same" if rows[0] == rows[1] else "rows"))
END
)" "the same"
}

TRACE=$TMP/trace.xray
"$BUILD/tests/make_trace" write "$TRACE" 4000 5 60 60
numbers "small trace" "$TRACE"
numbers "filtered" "$TRACE" --function '*<1*'
assert_eq "filtered: it says so" "$(json "$TMP/page.json" "d['filtered'], len(d['functions']) < 60")" "(True, True)"

head -c $(($(stat -c %s "$TRACE") / 2 + 1)) "$TRACE" >"$TMP/cut.xray"
cp "$TRACE.map" "$TMP/cut.xray.map"
numbers "truncated trace" "$TMP/cut.xray"
assert_eq "truncated trace: it has open calls, and says that it was cut" "$(json "$TMP/page.json" "d['open'] > 0, d['truncated']")" "(True, True)"

# Every function and thread is called something that would end a script, an attribute or a tag.
python3 - "$TRACE" <<'END'
import re, sys
path = sys.argv[1] + ".map"
data = open(path, "rb").read()
hostile = [b"</script><img src=x onerror=alert(1)>", b"\"'><svg onload=alert(2)>", b"<!--<script>", b"\xff</td>\xc3<b>"]
names = sorted(set(re.findall(rb"(?<=\0)_Z[^\0]{30,}(?=\0)", data)))
assert len(names) == 60, len(names)
for i, name in enumerate(names):
    data = data.replace(name, (hostile[i % 4] + b"%02d" % i).ljust(len(name), b".")[:len(name)])
open(path, "wb").write(data)
data = open(sys.argv[1], "rb").read()
assert data.count(b'"bench"') >= 5
open(sys.argv[1], "wb").write(data.replace(b'"bench"', b"\"<i>'>\""))
END
numbers "hostile names" "$TRACE"
dom "$TMP/page.html" functions >"$TMP/dom.html"
assert_eq "hostile names: what became an element" "$(grep -ciE '<(img|svg onload|i>'\'')' "$TMP/dom.html")" 0
assert_contains "hostile names: shown as text" "$(cat "$TMP/dom.html")" '&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;'
assert_contains "the page is ready" "$(head -c 300 "$TMP/dom.html")" 'data-ready='

# A million events are whole, four are merged and say so; the views can be opened by links.
"$BUILD/tests/make_trace" write "$TMP/big.xray" 1000000 8 200 150
numbers "a million events" "$TMP/big.xray"
assert_eq "a million events: whole" \
	"$(json "$TMP/page.json" "d['slices'], d['merged_slices'], d['stacks_dropped'], d['page']['slices']")" "(500000, 0, 0, 500000)"
assert_between "a million events: bytes" "$(stat -c %s "$TMP/page.html")" 1000000 30000000
dom "$TMP/page.html" 'timeline&range=1000000-2000000' >"$TMP/dom.html"
assert_contains "a link to a range" "$(cat "$TMP/dom.html")" '1.000 ms from 1.000 ms'
dom "$TMP/page.html" 'flame&search=function<1>' >"$TMP/dom.html"
assert_contains "a link to a search" "$(cat "$TMP/dom.html")" '>1 found, '
"$BUILD/tests/make_trace" write "$TMP/big.xray" 4000000 4 200
numbers "four million events" "$TMP/big.xray"
assert_between "four million events: slices" "$(json "$TMP/page.json" "d['page']['slices']")" 300000 1048576
assert_between "four million events: bytes" "$(stat -c %s "$TMP/page.html")" 1000000 30000000
dom "$TMP/page.html" timeline >"$TMP/dom.html"
assert_contains "four million events: it says what is merged" "$(cat "$TMP/dom.html")" 'calls shorter than 4.096 µs are merged'

# A file that was cut says so.
head -c 300000 "$TMP/page.html" >"$TMP/cut.html"
dom "$TMP/cut.html" functions >"$TMP/dom.html"
assert_contains "a page that was cut" "$(cat "$TMP/dom.html")" 'The data of this page cannot be shown'
assert_eq "what the browser complained about, but for the cut page" "$(grep -v 'cut.html' "$TMP/console")" ""
