# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# ClickHouse servers of a script's own on loopback, with configuration and data below $TMP; sourced by
# scripts/bench-clickhouse.sh and tests/live/clickhouse.sh. They are not the system's service and end with the script that
# calls clickhouse_end.
CLICKHOUSE_PORTS=()
declare -A CLICKHOUSE_PIDS=()

have_clickhouse() { command -v clickhouse-server >/dev/null && command -v clickhouse-client >/dev/null; }

# clickhouse_make N: ports and configurations of servers 0 to N - 1, which are the cluster "kxray"
clickhouse_make() {
	local i shards=
	# All sockets are open at once, so that no port is given twice.
	read -ra CLICKHOUSE_PORTS < <(python3 -c 'import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))' "$1")
	for ((i = 0; i < $1; i++)); do
		shards+="<shard><replica><host>127.0.0.1</host><port>${CLICKHOUSE_PORTS[i]}</port></replica></shard>"
	done
	for ((i = 0; i < $1; i++)); do
		mkdir -p "$TMP/clickhouse$i/data"
		cat >"$TMP/clickhouse$i/config.xml" <<-END
			<?xml version="1.0"?>
			<yandex>
			<logger><level>warning</level><log>$TMP/clickhouse$i/log</log><errorlog>$TMP/clickhouse$i/errors</errorlog></logger>
			<tcp_port>${CLICKHOUSE_PORTS[i]}</tcp_port><listen_host>127.0.0.1</listen_host>
			<path>$TMP/clickhouse$i/data/</path><tmp_path>$TMP/clickhouse$i/data/tmp/</tmp_path>
			<mark_cache_size>268435456</mark_cache_size>
			<default_profile>default</default_profile><default_database>default</default_database>
			<users_config>users.xml</users_config>
			<remote_servers><kxray>$shards</kxray></remote_servers>
			</yandex>
		END
		cat >"$TMP/clickhouse$i/users.xml" <<-END
			<?xml version="1.0"?>
			<yandex><profiles><default/></profiles><quotas><default/></quotas>
			<users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
			<quota>default</quota></default></users></yandex>
		END
	done
}

# clickhouse_start I: starts server I and waits until it answers; status 1, and $TMP/clickhouseI/out says why, if it ends before
clickhouse_start() {
	(cd "$TMP/clickhouse$1" && exec clickhouse-server --config-file=config.xml) >"$TMP/clickhouse$1/out" 2>&1 </dev/null &
	CLICKHOUSE_PIDS[$1]=$!
	until clickhouse "$1" -q 'SELECT 1' >/dev/null 2>&1; do
		kill -0 "${CLICKHOUSE_PIDS[$1]}" 2>/dev/null || return 1
		sleep 0.1
	done
}

# clickhouse I OPTION...: the client of server I
clickhouse() { clickhouse-client --host 127.0.0.1 --port "${CLICKHOUSE_PORTS[$1]}" "${@:2}"; }

# clickhouse_kill I: as in a crash, and waits for its end
clickhouse_kill() {
	kill -KILL "${CLICKHOUSE_PIDS[$1]}"
	wait "${CLICKHOUSE_PIDS[$1]}" 2>/dev/null
	unset "CLICKHOUSE_PIDS[$1]"
}

clickhouse_end() {
	local i
	for i in "${!CLICKHOUSE_PIDS[@]}"; do
		clickhouse_kill "$i"
	done
}
