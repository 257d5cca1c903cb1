// npm run test:replicas [-- words that the names of test files contain, then flags of vitest]: the tests that need PostgreSQL,
// redis-server, haproxy, pgbouncer, tinyproxy, prometheus and strace, which they start themselves, and Go for the program that copies
// SQLite databases.
import { globSync } from "node:fs";
import { runTests } from "./run-tests.ts";

/** Tests that mostly wait, and measure no times of less than seconds: they run beside the others, one after another. */
const MOSTLY_WAITING: ReadonlySet<string> = new Set(
  [
    "alert-rules",
    "contracts",
    "failover",
    "health",
    "killed-calls",
    "monitoring",
    "months",
    "network",
    "postgres",
    "proxies",
    "proxy",
    "read-replica",
    "redis-failover",
    "release",
    "restore-postgres",
    "restore-sqlite",
    "tls",
    "upgrade",
    "valkey",
    "without-postgres",
  ].map((name) => `test/replicas/${name}.test.ts`),
);

/** Tests that run only by name: building the Collector compiles some 900 packages of Go. */
const BY_NAME: ReadonlySet<string> = new Set(["test/replicas/collector.test.ts"]);

const given = process.argv.slice(2);
const end = given.findIndex((argument) => argument.startsWith("-"));
const words = end < 0 ? given : given.slice(0, end);
const flags = end < 0 ? [] : given.slice(end);
const files = globSync("test/replicas/**/*.test.ts").filter(
  (file) => (words.length === 0 && !BY_NAME.has(file)) || words.some((word) => file.includes(word)),
);
const lanes = [
  files.filter((file) => !MOSTLY_WAITING.has(file)),
  files.filter((file) => MOSTLY_WAITING.has(file)),
].filter((lane) => lane.length > 0);
// Vitest reports words without a matching file.
const [first = words, ...beside] = lanes;
const toRun = (lane: readonly string[]): string[] => ["--config", "vitest.replicas.config.ts", ...lane, ...flags];
await runTests(toRun(first), { beside: beside.map(toRun) });
