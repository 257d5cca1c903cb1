// npm run test:replicas: the tests that need PostgreSQL, redis-server, haproxy, pgbouncer, tinyproxy, prometheus and strace, which
// they start themselves, and Go for the program that copies SQLite databases.
import { runTests } from "./run-tests.ts";

await runTests(["--config", "vitest.replicas.config.ts", ...process.argv.slice(2)]);
