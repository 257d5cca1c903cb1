import { beforeAll, describe, inject, onTestFinished } from "vitest";
import { openStore, type Store } from "../../src/store/store.ts";
import { type OpenStore, describeStore } from "../store/contracts/contracts.ts";
import { createDatabase } from "../support/postgres.ts";

const openDatabase = (databaseUrl: string, options?: Parameters<OpenStore>[0]): Promise<Store> =>
  openStore({ dataDir: "/nowhere", databaseUrl }, options);

describe("PostgreSQL", () => {
  /** With all tables, which take longer to make than to copy. */
  let migrated: string;
  beforeAll(async () => {
    migrated = await createDatabase(inject("postgresUrl"));
    await (await openDatabase(migrated)).close();
  });

  describeStore(async (options) => {
    const store = await openDatabase(await createDatabase(inject("postgresUrl"), migrated), options);
    onTestFinished(() => store.close());
    return store;
  });
});
