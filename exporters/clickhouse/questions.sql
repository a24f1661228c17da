-- SPDX-License-Identifier: BSD-2-Clause
-- Ten questions to calls of many hosts. The database says of how many servers: kxray of one, kxray_all of all.
--     clickhouse-client -d kxray_all -n < questions.sql
-- Tables are joined by function_key after they have been aggregated, so that few rows are.

-- calls: how many calls has each function on each host, and how long do 99 of 100 take at most?
SELECT host, function, calls, p99_ns
FROM (
	SELECT host, function_key, countIf(how != 'open') AS calls,
		arraySort(groupArrayIf(duration_ns, how IN ('exit', 'tail'))) AS sorted,
		sorted[toUInt64(ceil(length(sorted) * 0.99))] AS p99_ns
	FROM calls WHERE how IN ('exit', 'tail', 'repaired', 'open') GROUP BY host, function_key
) ANY LEFT JOIN (SELECT function_key, function FROM functions) USING function_key
ORDER BY host, calls DESC, function;

-- self: in which functions is time spent, all hosts together?
SELECT function, self_ns
FROM (SELECT function_key, sum(self_ns) AS self_ns FROM calls GROUP BY function_key)
ANY LEFT JOIN (SELECT function_key, function FROM functions) USING function_key
ORDER BY self_ns DESC, function;

-- threads: which threads make the most calls?
SELECT host, tid, thread, count() AS calls FROM calls
GROUP BY host, tid, thread ORDER BY calls DESC, host, tid;

-- slowest: which are the three slowest calls of each host?
SELECT host, start_ns, duration_ns FROM calls WHERE how IN ('exit', 'tail')
ORDER BY host, duration_ns DESC LIMIT 3 BY host;

-- slow: of which functions do calls take a millisecond or more?
SELECT host, function, slow
FROM (SELECT host, function_key, count() AS slow FROM calls
	WHERE duration_ns >= 1000000 AND how IN ('exit', 'tail') GROUP BY host, function_key)
ANY LEFT JOIN (SELECT function_key, function FROM functions) USING function_key
ORDER BY host, slow DESC, function;

-- clock: how many calls began in each millisecond, by the wall clock?
SELECT host, intDiv(trace + start_ns, 1000000) AS ms, count() AS calls FROM calls
GROUP BY host, ms ORDER BY host, ms;

-- unused: which traced functions were never called?
SELECT DISTINCT function FROM functions
WHERE function_key GLOBAL NOT IN (SELECT function_key FROM calls) ORDER BY function;

-- off: in which functions are threads off the CPU?
SELECT host, function, off_ns
FROM (SELECT host, function_key, sum(off_cpu_ns) AS off_ns FROM calls
	WHERE off_cpu_ns > 0 GROUP BY host, function_key)
ANY LEFT JOIN (SELECT function_key, function FROM functions) USING function_key
ORDER BY host, off_ns DESC, function;

-- states: why are they off the CPU?
SELECT host, state, count() AS times, sum(duration_ns) AS off_ns FROM sched
GROUP BY host, state ORDER BY host, state;

-- lost: how many hits is each process short of?
SELECT host, pid, name, lost
FROM (SELECT host, trace, pid, sum(entries + exits) AS lost FROM losses GROUP BY host, trace, pid)
ANY LEFT JOIN (SELECT host, trace, pid, name FROM processes) USING host, trace, pid
ORDER BY host, pid;
