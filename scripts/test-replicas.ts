// npm run test:replicas [-- [--long] words that the names of test files contain, then flags of vitest]: the tests that need
// PostgreSQL, redis-server, nginx, caddy, haproxy, pgbouncer, tinyproxy, prometheus and strace, which they start themselves.
import { type Lanes, readLaneArguments, runLanes } from "./test-lanes.ts";

const REPLICAS: Lanes = {
  folder: "test/replicas",
  config: "vitest.replicas.config.ts",
  waiting: new Set([
    "alert-rules",
    "alerts",
    "audit",
    "between",
    "contracts",
    "failover",
    "health",
    "killed-calls",
    "monitoring",
    "months",
    "network",
    "outage",
    "postgres",
    "proxies",
    "proxy",
    "read-replica",
    "redis-cluster",
    "redis-failover",
    "redis-tls",
    "release",
    "restore-postgres",
    "restore-sqlite",
    "stored-configuration",
    "tls",
    "upgrade",
    "valkey",
    "without-postgres",
  ]),
  alone: new Set(["away", "key-list-speed", "request-log-speed", "usage-speed"]),
  // For `collector` and `restore-sqlite` Go compiles the OpenTelemetry Collector and Litestream for minutes.
  long: new Set([
    "alerts",
    "away",
    "collector",
    "key-list-speed",
    "proxies",
    "redis-cluster",
    "redis-sentinel",
    "redis-tls",
    "release",
    "request-log-speed",
    "restore-postgres",
    "restore-sqlite",
    "usage-speed",
    "valkey",
    "without-postgres",
  ]),
};

await runLanes(REPLICAS, readLaneArguments(process.argv.slice(2)));
