import { inject, onTestFinished } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { describeUsageSpeed } from "../inbound/dashboard/usage-speed.ts";
import { createDatabase } from "../support/postgres.ts";

describeUsageSpeed("PostgreSQL", async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const store = await openStore({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => store.close());
  return store;
});
