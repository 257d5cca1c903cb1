// Program: reads for the given number of milliseconds from a database that no other process uses, and prints its event-loop
// delay, which only other load on the machine can cause.
import { openStore } from "../../src/store/store.ts";
import { readWhile } from "./read-while.ts";

const [dataDir = "", ms = "0"] = process.argv.slice(2);
const store = await openStore({ dataDir, databaseUrl: undefined });
process.stdout.write("ready\n");
const endsAt = performance.now() + Number(ms);
const { loopDelayMs } = await readWhile(store, () => performance.now() < endsAt);
process.stdout.write(`${loopDelayMs}\n`);
await store.close();
