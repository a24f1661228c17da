#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# kxray top --prometheus: Debian's prometheus scrapes it, and answers with exactly the calls that the target counted; the file and
# names of any bytes are accepted by promtool.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
command -v prometheus >/dev/null || { skip top_metrics "needs the package prometheus"; exit 0; }

work() { printf '%s\n' "$1" >&"$TARGET_IN"; }
answers() { grep -c '^{' "$TMP/bursts.out"; }
has_answers() { [ "$(answers)" -ge "$1" ]; }

start_target bursts --calls=500
TARGET_PID=$PID
"$KXRAY" top -p "$TARGET_PID" -f hot -f seldom --interval 0.2 --prometheus 0 >"$TMP/top.out" 2>"$TMP/top.err" &
TOP_PID=$!
_pids+=("$TOP_PID")
wait_for has_text 'kxray: watching ' "$TMP/top.err"
url=$(sed -n 's/^kxray: metrics at //p' "$TMP/top.err")
port=${url#http://127.0.0.1:}
port=${port%/metrics}

cat >"$TMP/prometheus.yml" <<END
global: { scrape_interval: 300ms, scrape_timeout: 300ms }
scrape_configs: [ { job_name: kxray, static_configs: [ { targets: [ "127.0.0.1:$port" ] } ] } ]
END
background prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/tsdb" \
	--web.listen-address=127.0.0.1:0 2>"$TMP/prometheus.err"
listening() { sed -n 's/.*msg="Listening on" address=\([0-9.:]*\).*/\1/p' "$TMP/prometheus.err" | head -n 1; }
wait_for has_text 'msg="Listening on"' "$TMP/prometheus.err" || fail "prometheus" "$(tail -n 1 "$TMP/prometheus.err")"
api=http://$(listening)

# ask QUERY: the values that prometheus' HTTP API has for it, in order
ask() {
	python3 -IS - "$api" "$1" <<-'END'
	import json, sys, urllib.parse, urllib.request
	url = sys.argv[1] + "/api/v1/query?" + urllib.parse.urlencode({"query": sys.argv[2]})
	answer = json.load(urllib.request.urlopen(url))
	print(*(r["value"][1] for r in answer["data"]["result"]))
	END
}
answers_with() { [ "$(ask "$2")" = "$1" ]; }
# eventually NAME QUERY WANT: a scrape sees the calls at the end of an interval
eventually() { assert "$1" "$(ask "$2"), want $3" wait_for answers_with "$3" "$2"; }

work 20
wait_for has_answers 1
hot=$(grep '^{' "$TMP/bursts.out" | tail -n 1 | sed 's/.*"hot":\([0-9]*\).*/\1/')
seldom=$(grep '^{' "$TMP/bursts.out" | tail -n 1 | sed 's/.*"seldom":\([0-9]*\).*/\1/')
eventually "calls" 'kxray_calls_total{function="hot",module="bursts"}' "$hot"
eventually "calls of the other" 'kxray_calls_total{function="seldom"}' "$seldom"
eventually "calls with a duration" 'kxray_call_duration_seconds_count{function="hot"}' "$hot"
eventually "the last bucket" 'kxray_call_duration_seconds_bucket{function="hot",le="+Inf"}' "$hot"
eventually "buckets" 'count(kxray_call_duration_seconds_bucket{function="hot"})' 30
assert "a quantile" "$(ask 'histogram_quantile(0.5, kxray_call_duration_seconds_bucket{function="hot"}) > 0')" \
	test -n "$(ask 'histogram_quantile(0.5, kxray_call_duration_seconds_bucket{function="hot"}) > 0')"
work 3
wait_for has_answers 2
more=$(grep '^{' "$TMP/bursts.out" | tail -n 1 | sed 's/.*"hot":\([0-9]*\).*/\1/')
assert "the target worked on" "$hot, then $more" [ "$more" -gt "$hot" ]
eventually "more calls" 'kxray_calls_total{function="hot"}' "$more"

# What is not /metrics, or not GET.
http() { # METHOD PATH
	python3 -IS -c 'import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
c.request(sys.argv[2], sys.argv[3])
r = c.getresponse()
print(r.status, r.getheader("Content-Type"), len(r.read()) > 0)' "$port" "$1" "$2"
}
assert_eq "GET /metrics" "$(http GET /metrics)" "200 text/plain; version=0.0.4; charset=utf-8 True"
assert_eq "HEAD /metrics" "$(http HEAD /metrics)" "200 text/plain; version=0.0.4; charset=utf-8 False"
assert_eq "GET /" "$(http GET /)" "404 text/plain True"
assert_eq "POST /metrics" "$(http POST /metrics)" "405 text/plain True"
run "$KXRAY" top -p "$TARGET_PID" -f hot --prometheus "$port" -n 1
assert_eq "a port in use: status" "$STATUS" 1
assert_contains "a port in use: message" "$ERR" "metrics cannot be served at 127.0.0.1:$port: Address already in use"
assert_eq "a port in use: nothing was attached" "$(grep -c 'kxray: watching' <<<"$ERR")" 0
run "$KXRAY" top -p "$TARGET_PID" -f hot --prometheus "$TMP/nosuch/file" -n 1
assert_eq "no place for the file: status" "$STATUS" 1
assert_eq "no place for the file: message" "$ERR" \
	"kxray top: '$TMP/nosuch/file' cannot be written: No such file or directory; choose another --prometheus FILE"

kill -INT "$TOP_PID"
STATUS=0
wait "$TOP_PID" || STATUS=$?
assert_eq "status" "$STATUS" 0
work 0
end_target "$TARGET_PID"
assert_eq "the target" "$STATUS" 0

# A file, and names of any bytes.
symbol=$'qu"o\\te\e[31m\n\x9b2J\xff{le="1"}'
objcopy --redefine-sym "leaf_a=$symbol" "$TARGETS/counts" "$TMP/counts"
TARGETS=$TMP start_target counts --after=600000
TARGET_PID=$PID
"$KXRAY" top -p "$TARGET_PID" -f 'qu*' -f leaf_b --interval 0.1 --prometheus "$TMP/metrics.prom" -q 2>"$TMP/top.err" &
TOP_PID=$!
_pids+=("$TOP_PID")
wait_for test -s "$TMP/metrics.prom"
go_target
wait_for grep -q 'kxray_calls_total{.*} 4600$' "$TMP/metrics.prom" || fail "the file" "$(cat "$TMP/metrics.prom" "$TMP/top.err")"
"$(command -v promtool)" check metrics <"$TMP/metrics.prom" >"$TMP/promtool.out" 2>&1
assert_eq "promtool: $(cat "$TMP/promtool.out")" "$?" 0
assert_contains "the name, escaped" "$(cat "$TMP/metrics.prom")" \
	'kxray_calls_total{function="qu\"o\\\\te\\x1b[31m\\n\\x9b2J\\xff{le=\"1\"}",module="counts"} 4600'
kill -INT "$TOP_PID"
STATUS=0
wait "$TOP_PID" || STATUS=$?
assert_eq "file: status" "$STATUS" 0
assert_eq "file: nothing else is left" "$(cd "$TMP" && echo metrics.prom*)" "metrics.prom"
kill -KILL "$TARGET_PID"
wait "$TARGET_PID" 2>/dev/null || :
