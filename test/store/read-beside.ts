// Run as a process of its own: reads from a database that nobody else uses for as many milliseconds as it is told, and says
// how long its event loop was kept waiting: only by the machine, for nothing else is there to wait for.
import { openStore } from "../../src/store/store.ts";
import { readWhile } from "./read-while.ts";

const [dataDir = "", ms = "0"] = process.argv.slice(2);
const store = await openStore({ dataDir, databaseUrl: undefined });
process.stdout.write("ready\n");
const endsAt = performance.now() + Number(ms);
const { loopDelayMs } = await readWhile(store, () => performance.now() < endsAt);
process.stdout.write(`${loopDelayMs}\n`);
await store.close();
