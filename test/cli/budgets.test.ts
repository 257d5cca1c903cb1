import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { periodAt } from "../../src/core/clock.ts";
import { subjectOf } from "../../src/limits/attributed.ts";
import { openStore, type Store } from "../../src/store/store.ts";

let dataDir: string;
/** A key with 0.30 USD a month for each end user, and one without. */
let [app, other] = ["", ""];

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "parley-budgets-"));
  app = await makeKey("--name", "app", "--end-user-budget", "0.30/month");
  other = await makeKey("--name", "other", "--session-budget", "2");
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const run = (...argv: readonly string[]) => captureCli(argv, { env: { PARLEY_DATA_DIR: dataDir } });

async function makeKey(...flags: readonly string[]): Promise<string> {
  return (JSON.parse((await run("keys", "create", ...flags, "--json")).stdout) as { id: string }).id;
}

async function withStore(action: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore({ dataDir, databaseUrl: undefined });
  try {
    await action(store);
  } finally {
    await store.close();
  }
}

const month = (): string => periodAt(Date.now(), "month");

/** Holds money of an end user, as a completion in flight does. Answers whether there was room. */
async function hold(name: string, amountMicroUsd: number): Promise<boolean> {
  let isAdmitted = false;
  const ofKey = { subject: subjectOf("end_user", app, name), limitMicroUsd: 300_000, period: "month", name } as const;
  const demand = { holds: [ofKey], amountMicroUsd, lastsMs: 3_600_000, replica: undefined };
  await withStore(async ({ budgets }) => {
    isAdmitted = (await budgets.hold({ id: `chatcmpl-${name}-${amountMicroUsd}`, ...demand })).admitted;
  });
  return isAdmitted;
}

describe("the commands about budgets of end users", () => {
  it("list what each has used, and give one a budget of its own, which the next request has", async () => {
    expect(await hold("ann@example.com", 290_000)).toBe(true);
    expect(await hold("ann@example.com", 20_000)).toBe(false);
    const set = await run("budgets", "set", app, "ann@example.com", "0.5");
    const until = `until the end of ${month()} (UTC)`;
    expect(set).toEqual({
      code: 0,
      stderr: "",
      stdout: `ann@example.com has a budget of its own ${until}: 0.5 USD, of which 0.21 are left.\n`,
    });
    expect(await hold("ann@example.com", 20_001)).toBe(true);
    // Also before the first request.
    await run("budgets", "set", app, "bob", "0");
    expect(await hold("bob", 1)).toBe(false);
    const { stdout: table } = await run("budgets", "list", app);
    expect(table).toMatch(/^NAME +SPENT +HELD +BUDGET +LEFT +OF\n/);
    expect(table).toMatch(/ann@example\.com +0 +0\.310001 +0\.5 +0\.189999 +own\n/);
    expect(JSON.parse((await run("budgets", "list", app, "--search", "BOB", "--json")).stdout)).toEqual([
      { name: "bob", period: month(), spent_usd: 0, held_usd: 0, budget_usd: 0, left_usd: 0, own_budget: true },
    ]);

    const cleared = await run("budgets", "set", app, "ann@example.com", "none");
    expect(cleared.stdout).toBe("ann@example.com has the budget of the key: 0.3 USD, of which 0 are left.\n");
    expect(await hold("ann@example.com", 2)).toBe(false);
    const { stdout: audit } = await run("audit", "list", "--json");
    expect(audit.match(/attributed_budget_changed/g)).toHaveLength(3);
    expect(audit).not.toContain("ann@");
    // Each of the dozen commands opens the database.
  }, 180_000);

  it("have those of sessions", async () => {
    const set = await run("budgets", "set", other, "run 7", "3", "--sessions");
    expect(set.stdout).toBe(
      "run 7 has a budget of its own as long as the session is known: 3 USD, of which 3 are left.\n",
    );
    const listed = JSON.parse((await run("budgets", "list", other, "--sessions", "--json")).stdout) as object[];
    expect(listed).toMatchObject([{ name: "run 7", period: "session", budget_usd: 3 }]);
  });

  it("list more than one statement reads", async () => {
    const many = await makeKey("--name", "many", "--end-user-budget", "1/month");
    await withStore(async ({ attributedBudgets }) => {
      const of = { kind: "end_user", keyFamilyId: many, period: month() } as const;
      for (let index = 0; index < 1_001; index += 1) await attributedBudgets.setLimit(of, `user-${index}`, 5);
    });
    const listed = JSON.parse((await run("budgets", "list", many, "--json")).stdout) as { name: string }[];
    expect(new Set(listed.map(({ name }) => name)).size).toBe(1_001);
  });

  it.each([
    ["an unknown key", 1, "there is no key key_none", ["list", "key_none"]],
    [
      "a list of a key without budgets",
      1,
      /has no budget for each end user; give it one: parley keys update/,
      ["list", "OTHER"],
    ],
    ["a list of a key without budgets of sessions", 1, /--session-budget 1/, ["list", "APP", "--sessions"]],
    ["a budget where the key gives none", 1, "set one first", ["set", "OTHER", "ann", "1"]],
    ["a name that no call has", 1, 'is stored as "ann"; write that', ["set", "APP", " ann ", "1"]],
    ["no number", 2, "the budget is a number of US dollars such as 25 or 0.50", ["set", "APP", "ann", "much"]],
    ["no amount", 2, "USD|none", ["set", "APP", "ann"]],
  ] as const)("refuse %s", async (_, expected, problem, [act, ...argv]) => {
    const named = argv.map((word) => (word === "APP" ? app : word === "OTHER" ? other : word));
    const { code, stdout, stderr } = await run("budgets", act, ...named);
    expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
    expect(stderr).toMatch(problem);
  });
});
