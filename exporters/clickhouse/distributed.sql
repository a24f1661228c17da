-- SPDX-License-Identifier: BSD-2-Clause
-- The tables of schema.sql on all servers of the cluster "kxray" (remote_servers in config.xml), to read from, as database kxray_all.
-- Each trace is loaded into one server, by load.sh into its tables in kxray: never through these.
CREATE DATABASE IF NOT EXISTS kxray_all;
CREATE TABLE IF NOT EXISTS kxray_all.calls AS kxray.calls ENGINE = Distributed(kxray, kxray, calls);
CREATE TABLE IF NOT EXISTS kxray_all.functions AS kxray.functions ENGINE = Distributed(kxray, kxray, functions);
CREATE TABLE IF NOT EXISTS kxray_all.processes AS kxray.processes ENGINE = Distributed(kxray, kxray, processes);
CREATE TABLE IF NOT EXISTS kxray_all.sched AS kxray.sched ENGINE = Distributed(kxray, kxray, sched);
CREATE TABLE IF NOT EXISTS kxray_all.losses AS kxray.losses ENGINE = Distributed(kxray, kxray, losses);
