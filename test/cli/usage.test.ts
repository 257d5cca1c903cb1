import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/cli.ts";
import { openStore } from "../../src/store/store.ts";
import { entry } from "../store/contracts/entries.ts";

const DAY_MS = 86_400_000;

let dataDir: string;
let keyId: string;

async function run(line: string) {
  let [stdout, stderr] = ["", ""];
  const code = await runCli(line.split(" "), {
    env: { PARLEY_DATA_DIR: dataDir },
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    serve: () => Promise.resolve(0),
  });
  return { code, stdout, stderr };
}

async function usage(flags: string) {
  const { code, stdout, stderr } = await run(`usage --json ${flags}`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as { since: string; by: string; usage: Record<string, unknown>[] };
}

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "parley-usage-"));
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

  it.each([
    ["--by week", "--by is one of model, key, account, day"],
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
