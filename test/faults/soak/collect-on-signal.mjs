// Preloaded (`node --import`): SIGUSR2 collects garbage, so that the heap size excludes unreachable objects. Worker
// threads do not receive signals.
import { isMainThread } from "node:worker_threads";

if (isMainThread) process.on("SIGUSR2", () => globalThis.gc({ type: "major", execution: "sync" }));
