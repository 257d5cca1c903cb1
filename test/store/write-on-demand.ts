// Program: writes a ledger entry for each line on stdin, prints its ID, and reads it with the connection for reports.
import { createInterface } from "node:readline";
import { openStore } from "../../src/store/store.ts";
import { entry } from "./contracts/entries.ts";

const [dataDir = ""] = process.argv.slice(2);
const store = await openStore({ dataDir, databaseUrl: undefined });
await store.ledger.list({ limit: 1 });
process.stdout.write("ready\n");
for await (const _line of createInterface({ input: process.stdin })) {
  const written = entry();
  await store.ledger.insert([written]);
  await store.ledger.list({ limit: 1 });
  process.stdout.write(`${written.completionId}\n`);
}
