// npm run test:replicas [-- words that the names of test files contain, then flags of vitest]: the tests that need PostgreSQL,
// redis-server, haproxy, pgbouncer, tinyproxy, prometheus and strace, which they start themselves.
import { globSync } from "node:fs";
import { runTests, TWO_AT_A_TIME } from "./run-tests.ts";

/** Tests that mostly wait, and measure no times of less than seconds: they run beside the others, two at a time. */
const MOSTLY_WAITING: ReadonlySet<string> = new Set(
  [
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
  ].map((name) => `test/replicas/${name}.test.ts`),
);

/** Tests of how long answers take: they run last, with nothing beside them. */
const ALONE: ReadonlySet<string> = new Set(
  ["away", "request-log-speed", "usage-speed"].map((name) => `test/replicas/${name}.test.ts`),
);

/** Tests that run only by name: Go compiles the OpenTelemetry Collector and Litestream for minutes. */
const BY_NAME: ReadonlySet<string> = new Set(
  ["collector", "restore-sqlite"].map((name) => `test/replicas/${name}.test.ts`),
);

const given = process.argv.slice(2);
const end = given.findIndex((argument) => argument.startsWith("-"));
const words = end < 0 ? given : given.slice(0, end);
const flags = end < 0 ? [] : given.slice(end);
const files = globSync("test/replicas/**/*.test.ts").filter(
  (file) => (words.length === 0 && !BY_NAME.has(file)) || words.some((word) => file.includes(word)),
);
const alone = files.filter((file) => ALONE.has(file));
const waiting = files.filter((file) => MOSTLY_WAITING.has(file));
const others = files.filter((file) => !ALONE.has(file) && !MOSTLY_WAITING.has(file));
const common = ["--config", "vitest.replicas.config.ts", ...flags];
const runs = (lane: readonly string[], more: readonly string[] = []): string[][] =>
  lane.length === 0 ? [] : [[...common, ...more, ...lane]];
const phases = [[...runs(others), ...runs(waiting, TWO_AT_A_TIME)], runs(alone)].filter((phase) => phase.length > 0);
// Vitest reports words without a matching file.
if (files.length === 0) phases.push([[...common, ...words]]);
for (const [first = [], ...beside] of phases) await runTests(first, { beside });
