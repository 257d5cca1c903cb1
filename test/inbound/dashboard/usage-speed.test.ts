import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openStore } from "../../../src/store/store.ts";
import { describeUsageSpeed } from "./usage-speed.ts";

describeUsageSpeed("SQLite", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-usage-speed-"));
  const store = await openStore({ dataDir, databaseUrl: undefined });
  onTestFinished(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  });
  return store;
});
