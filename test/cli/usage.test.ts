import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { openStore } from "../../src/store/store.ts";
import { entry } from "../store/contracts/entries.ts";
import { makeDataDir } from "../support/data-dir.ts";

const DAY_MS = 86_400_000;

let dataDir: string;
let keyId: string;

const run = (line: string) => captureCli(line, { env: { PARLEY_DATA_DIR: dataDir } });

async function usage(flags: string) {
  const { code, stdout, stderr } = await run(`usage --json ${flags}`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as { since: string; by: string; usage: Record<string, unknown>[] };
}

beforeEach(async () => {
  dataDir = await makeDataDir("parley-usage-");
  keyId = (JSON.parse((await run("keys create --name team --json")).stdout) as { id: string }).id;
  const nowMs = Date.now();
  const times = [nowMs - 1_000, nowMs - 2 * DAY_MS, nowMs - 40 * DAY_MS];
  const store = await openStore({ dataDir, databaseUrl: undefined });
  await store.ledger.insert(
    times.map((startedAtMs, index) =>
      entry({
        completionId: `chatcmpl-${index}`,
        keyId,
        accountId: "acct_default",
        startedAtMs,
        endedAtMs: startedAtMs,
        servedModel: index === 0 ? "a" : "b",
        costMicroUsd: 1_500_000 * (index + 1),
        attribution: { session: `run-${index}`, endUser: "ann" },
      }),
    ),
  );
  await store.close();
});
afterEach(() => rmSync(dataDir, { recursive: true }));

describe("parley usage", () => {
  it.each([
    ["--by model", ["b", "a"]],
    ["--by account", ["acct_default"]],
    ["--since 24h", ["a"]],
    ["--since 60d --until 10d", ["b"]],
    ["--account acct_default --since 1d", ["a"]],
    ["--by session --since 60d", ["run-2", "run-1", "run-0"]],
    ["--by end-user", ["ann"]],
    ["--by model --session run-0", ["a"]],
    ["--by team", [null]],
  ])("%s groups the sums, the most expensive first", async (flags, groups) => {
    expect((await usage(flags)).usage.map(({ group }) => group)).toEqual(groups);
  });

  it("sums days in chronological order", async () => {
    const { since, by, usage: rows } = await usage("--by day --since 2020-01-01");
    expect({ since, by }).toEqual({ since: "2020-01-01T00:00:00.000Z", by: "day" });
    expect(rows.map((row) => row["cost_micro_usd"])).toEqual([4_500_000, 3_000_000, 1_500_000]);
  });

  it("shows people a table with a total", async () => {
    const { stdout } = await run(`usage --by key --key ${keyId}`);
    expect(stdout).toMatch(new RegExp(`^KEY .*USD\n${keyId} \\(team\\) +2 .* 4\\.500000\n$`));
    expect((await run("usage")).stdout).toMatch(/\ntotal +2 .* 4\.500000\n$/);
  });

  it("has the largest rows, and one of all others", async () => {
    expect((await usage("--top 1")).usage.map(({ group, completions }) => [group, completions])).toEqual([
      ["b", 1],
      [null, 1],
    ]);
    expect((await run("usage --top 1")).stdout).toMatch(/\nall others +1 .*\ntotal +2 /);
  });

  it("says when there are too many keys to add up each", async () => {
    const database = new DatabaseSync(join(dataDir, "parley.db"));
    const dayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    database.exec(`
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 100001)
      insert into usage_hours (hour_ms, account_id, key_id, model, outcome, completions, partial, estimated, prompt_tokens,
        cached_tokens, completion_tokens, reasoning_tokens, image_tokens, cost_micro_usd)
      select ${dayMs}, 'acct_default', 'key_' || n, 'm', 'served', 1, 0, 0, 0, 0, 0, 0, 0, n from numbers;
      insert into usage_leaders values (${dayMs}, 'key', 'key_100001', 100001, 1)`);
    database.close();
    const { code, stdout, stderr } = await run("usage --by key --since 1d");
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\nkey_100001 +1 /)]);
    expect(stderr).toContain("There are too many keys to add up each");
    expect(JSON.parse((await run("usage --by key --since 1d --json")).stdout)).toMatchObject({ chosen_by_day: true });
  });

  it.each([
    ["--top 0", "--top is a number of rows, 1 to 1000"],
    ["--top 1001", "--top is a number of rows, 1 to 1000"],
    ["--by day --top 5", "--top has no effect on days"],
    ["--by week", "--by is one of model, key, account, team, end-user, session, agent, tag, day"],
    ["--since yesterday", "--since is a date in UTC such as 2026-11-01"],
    ["--until 2026-13-01", "--until is a date in UTC"],
    ["--account nobody@example.com", "there is no account nobody@example.com"],
    ["--key key_none", "there is no key key_none; parley keys list shows all"],
  ])("refuses %s", async (flags, reason) => {
    const { code, stdout, stderr } = await run(`usage ${flags}`);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(reason);
  });
});
