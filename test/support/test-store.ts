import { rmSync } from "node:fs";
import { onTestFinished } from "vitest";
import { openStore, type Store } from "../../src/store/store.ts";
import { makeDataDir } from "./data-dir.ts";

/** Opens a migrated SQLite store in a folder of its own, both until the end of the test. */
export async function openTestStore(
  options?: Parameters<typeof openStore>[1],
): Promise<{ readonly store: Store; readonly dataDir: string }> {
  const dataDir = await makeDataDir("parley-test-");
  const store = await openStore({ dataDir, databaseUrl: undefined }, options);
  onTestFinished(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  });
  return { store, dataDir };
}
