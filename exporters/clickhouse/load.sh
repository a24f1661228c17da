#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Loads a trace into a ClickHouse server that has the tables of schema.sql:
#     load.sh TRACE [NAME=VALUE...] [CLICKHOUSE-CLIENT-OPTION...]
#     load.sh trace.xray --host db1 --port 9000
#     load.sh trace.xray host=web1 trace=1764000000000000000
# NAME=VALUE fills a column in all rows: one of your own, or host and trace if the trace does not have them.
#
# Each row is loaded once, whatever is killed meanwhile: run it again, or let it try again (TRIES, default 60, PAUSE seconds apart,
# default 1). The exporter always writes the same rows in the same order, the server takes blocks in that order and each as a
# whole, so that the number of rows there says where to go on. One loader for a trace at a time, into always the same server.
set -euo pipefail

die() { echo "load.sh: $*" >&2; exit 1; }
KXRAY=${KXRAY:-kxray} CLIENT=${CLICKHOUSE_CLIENT:-clickhouse-client} TRIES=${TRIES:-60} PAUSE=${PAUSE:-1}
[ $# -gt 0 ] || die "no trace is named: load.sh TRACE [NAME=VALUE...] [CLICKHOUSE-CLIENT-OPTION...]"
TRACE=$1
shift
declare -A constants=()
options=()
for word; do
	[[ $word = [a-z]*=* ]] || { options+=("$word") && continue; }
	[[ $word != *[,$'\n\r']* ]] || die "$word: a value cannot have a comma or a line break"
	# in CSV it gets an apostrophe, and with that it would not be found again
	[[ $word != host=[=+@-]* ]] || die "$word: the name of a host cannot begin with =, +, - or @"
	constants[${word%%=*}]=${word#*=}
done
errors=$(mktemp)
trap 'rm -f "$errors" "$errors.export"' EXIT

# patiently COMMAND...: until it succeeds, as a server needs a while to start again
patiently() {
	local try
	for ((try = 1; try <= TRIES; try++)); do
		"$@" && return
		sleep "$PAUSE"
	done
	die "$TRACE: given up after $TRIES tries: $(head -n 1 "$errors")"
}

query() { "$CLIENT" "${options[@]}" -q "$1" </dev/null 2>"$errors"; }
quoted() { sed "s/[\\\\']/\\\\&/g; s/^/'/; s/\$/'/" <<<"$1"; }
export_csv() { "$KXRAY" export -f csv -o - --csv-null '\N' "$@" "$TRACE" 2>"$errors.export"; }

# Its error comes after its warnings, and before "Try 'kxray export --help'".
why_not_exported() {
	local line why=
	while read -r line; do
		[[ $line = Try* ]] || why=${line#kxray export: }
	done <"$errors.export"
	why=${why#"$TRACE: "}
	echo "${why:-its map names no function: give it host=NAME and trace=NUMBER}"
}

# The value of a column that is the same in all rows
constant() {
	local rows
	[ -z "${constants[$1]+set}" ] || { echo "${constants[$1]}" && return; }
	rows=$(export_csv --csv-table functions --csv-columns "$1" | head -n 2) || :
	[[ $rows = *$'\n'* ]] || die "$TRACE: $(why_not_exported)"
	sed '1d; s/\r$//; s/^"\(.*\)"$/\1/; s/""/"/g' <<<"$rows"
}

# How many rows of the trace are there; not while the connection of an earlier loader may still have a block to write, which the
# server is asked for first: scalars come before the rest of a query
count_rows() {
	local writers rows
	rows=$(query "SELECT (SELECT count() FROM system.processes WHERE query_id = $(quoted "$id")), count()
		FROM kxray.$table WHERE host = $(quoted "$host") AND trace = $trace") || return
	read -r writers have <<<"$rows"
	[ "$writers" = 0 ] && [ -n "$have" ]
}

insert() {
	local status
	export_csv --csv-table "$table" --csv-columns "$columns" --csv-skip "$have" |
		"$CLIENT" "${options[@]}" --format_csv_allow_single_quotes=0 --query_id="$id" \
			-q "INSERT INTO kxray.$table ($names) FORMAT CSVWithNames" 2>"$errors" &&
		return
	status=("${PIPESTATUS[@]}")
	[ "${status[0]}" = 0 ] || die "$TRACE: $(why_not_exported)"
	return 1
}
load_rest() {
	count_rows && insert
}

host=$(constant host)
trace=$(constant trace)
[[ $trace =~ ^[0-9]+$ ]] || die "trace takes a number, not '$trace'"
declare -A columns_of=()
get_columns() {
	local table names
	while read -r table names; do
		columns_of[$table]=$names
	done < <(query "SELECT table, arrayStringConcat(groupArray(name), ',') FROM system.columns
		WHERE database = 'kxray' AND default_kind = '' GROUP BY table")
	[ ${#columns_of[@]} -gt 0 ]
}
patiently get_columns
for table in functions processes sched losses calls; do
	id="kxray-$table-$trace-$host"
	names=${columns_of[$table]-}
	[ -n "$names" ] || die "the server has no table kxray.$table; schema.sql makes it"
	columns=
	for name in ${names//,/ }; do
		columns+=${columns:+,}$name${constants[$name]+=${constants[$name]}}
	done
	if [ $table = functions ]; then
		have=0
		patiently insert
	else
		patiently load_rest
	fi
done
patiently count_rows
echo "$TRACE: $have calls of $host"
