// Program run by store.test.ts: makes keys in the database of the given data directory.
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";

const [dataDir = "", count = "0"] = process.argv.slice(2);
const store = await openStore({ dataDir, databaseUrl: undefined });
for (let index = 0; index < Number(count); index++) {
  const { secret } = await createKey({ store: store.keys, clock: systemClock }, { name: `${process.pid}` });
  process.stdout.write(`${secret}\n`);
}
await store.close();
