import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { memoryKeyStore } from "../access/fakes.ts";
import { describeStore } from "./contracts/contracts.ts";
import { describeKeyStore } from "./contracts/key-store.ts";

describe("SQLite", () => {
  /** With all tables, which take longer to make than to copy. */
  const migrated = mkdtempSync(join(tmpdir(), "parley-contract-"));
  beforeAll(async () => (await openStore({ dataDir: migrated, databaseUrl: undefined })).close());
  afterAll(() => rmSync(migrated, { recursive: true }));

  describeStore(async (options) => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-contract-"));
    cpSync(migrated, dataDir, { recursive: true });
    const store = await openStore({ dataDir, databaseUrl: undefined }, options);
    onTestFinished(async () => {
      await store.close();
      rmSync(dataDir, { recursive: true });
    });
    return store;
  });
});

describe("the in-memory stores of other tests", () => {
  describeKeyStore(() => Promise.resolve({ keys: memoryKeyStore() }));
});
