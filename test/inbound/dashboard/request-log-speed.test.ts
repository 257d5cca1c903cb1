import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../../src/store/store.ts";
import { describeRequestLogSpeed } from "./request-log-speed.ts";

describeRequestLogSpeed("SQLite", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-speed-"));
  const store = await openStore({ dataDir, databaseUrl: undefined });
  return {
    store,
    async close() {
      await store.close();
      rmSync(dataDir, { recursive: true });
    },
  };
});
