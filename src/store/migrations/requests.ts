import type { Migration } from "../migration.ts";

const LIMITS = ["request_limit", "token_limit"] as const;

export const requests: Migration = {
  name: "the log of requests by when they ended, with their limits at that moment",
  async up({ schema }) {
    for (const limit of LIMITS) {
      for (const column of [limit, `${limit}_remaining`, `${limit}_reset_ms`]) {
        await schema.alterTable("completions").addColumn(column, "bigint").execute();
      }
    }
    for (const index of ["completions_time", "completions_account", "completions_key"]) {
      await schema.dropIndex(index).execute();
    }
    // Each costs time on every completion. Within a moment the database sorts by the ID: there are few.
    await schema.createIndex("completions_end").on("completions").column("ended_at_ms").execute();
    const byAccount = schema.createIndex("completions_account_end").on("completions");
    await byAccount.columns(["account_id", "ended_at_ms"]).execute();
    const byKey = schema.createIndex("completions_key_end").on("completions");
    await byKey.columns(["key_id", "ended_at_ms"]).execute();
    const byRequest = schema.createIndex("completions_request").on("completions");
    await byRequest.columns(["request_id", "ended_at_ms"]).execute();
  },
};
