// Program: opens the database and prints its schema versions before and after.
import { openStore } from "../../src/store/store.ts";

const [databaseUrl = ""] = process.argv.slice(2);
process.stdout.write("ready\n");
await new Promise((resolve) => process.stdin.once("data", resolve));
process.stdin.destroy();
const store = await openStore({ dataDir: "/nowhere", databaseUrl });
process.stdout.write(`${JSON.stringify(store.versions())}\n`);
await store.close();
