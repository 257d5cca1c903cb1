import { inject } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { describeRequestLogSpeed } from "../inbound/dashboard/request-log-speed.ts";
import { createDatabase } from "../support/postgres.ts";

describeRequestLogSpeed("PostgreSQL", async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const store = await openStore({ dataDir: "/nowhere", databaseUrl });
  return { store, close: () => store.close() };
});
