// Loaded before the program (`node --import`): SIGUSR2 collects all garbage, so that what the heap holds can be told from
// what it has not cleared away yet. Threads get no signals.
import { isMainThread } from "node:worker_threads";

if (isMainThread) process.on("SIGUSR2", () => globalThis.gc({ type: "major", execution: "sync" }));
