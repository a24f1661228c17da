-- SPDX-License-Identifier: BSD-2-Clause
-- Tables for what `kxray export -f csv` writes, on one ClickHouse server (18.16 and later):
--     clickhouse-client -n < schema.sql
-- load.sh fills them. A column without a default is a column of the exporter of this name; a column of your own is filled by
-- load.sh NAME=VALUE, if it has no default either.
--
-- A trace is known by its host and by trace, the ns since 1970 at its first record. All rows of a trace are in one partition, so
-- that a block of an insert is there as a whole or not at all, and load.sh can go on where a load ended.
CREATE DATABASE IF NOT EXISTS kxray;

CREATE TABLE IF NOT EXISTS kxray.calls (
	host String,
	trace UInt64,
	pid Int32,
	tid Int32,
	thread String,
	function_key UInt64,
	start_ns UInt64,
	duration_ns UInt64,
	self_ns UInt64,
	depth UInt32,
	cpu UInt16,
	how String,
	args String,
	caller String,
	result Nullable(Int64),
	values String,
	off_cpu_ns Nullable(UInt64),
	time DateTime ALIAS toDateTime(intDiv(trace + start_ns, 1000000000))
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(toDateTime(intDiv(trace, 1000000000)))
ORDER BY (host, trace, function_key, start_ns);

-- The same function of the same build has the same key in all traces, and one row once parts have been merged.
CREATE TABLE IF NOT EXISTS kxray.functions (
	function_key UInt64,
	function String,
	module String,
	build_id String,
	address String,
	size UInt32,
	file String,
	line Nullable(UInt32)
) ENGINE = ReplacingMergeTree
ORDER BY function_key;

CREATE TABLE IF NOT EXISTS kxray.processes (
	host String,
	trace UInt64,
	pid Int32,
	ns_pid Nullable(Int32),
	parent Nullable(Int32),
	name String,
	command String,
	started_ns Nullable(UInt64),
	ended_ns Nullable(UInt64)
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(toDateTime(intDiv(trace, 1000000000)))
ORDER BY (host, trace, pid);

CREATE TABLE IF NOT EXISTS kxray.sched (
	host String,
	trace UInt64,
	pid Int32,
	tid Int32,
	thread String,
	function_key UInt64,
	start_ns UInt64,
	duration_ns UInt64,
	wait_ns UInt64,
	state String,
	waker Nullable(UInt32),
	waker_cpu Nullable(UInt16),
	open UInt8
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(toDateTime(intDiv(trace, 1000000000)))
ORDER BY (host, trace, tid, start_ns);

CREATE TABLE IF NOT EXISTS kxray.losses (
	host String,
	trace UInt64,
	pid Int32,
	tid Int32,
	thread String,
	start_ns UInt64,
	duration_ns UInt64,
	entries UInt64,
	exits UInt64
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(toDateTime(intDiv(trace, 1000000000)))
ORDER BY (host, trace, tid, start_ns);
