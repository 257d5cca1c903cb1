import { rmSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { BudgetHolder } from "../../../gen/parley/console/v1/attribution_pb.js";
import { BudgetPeriod } from "../../../gen/parley/console/v1/key_pb.js";
import { openStore, type Store } from "../../../src/store/store.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import { makeDataDir } from "../../support/data-dir.ts";

type Person = Browser & { readonly id: string };

let store: Store;
let dataDir: string;
let site: ConsoleUnderTest;
let [ada, bob]: Person[] = [];
/** A key of Bob's, with 0.30 USD a month for each end user. */
let keyId: string;

beforeEach(async () => {
  dataDir = await makeDataDir("parley-attribution-");
  store = await openStore({ dataDir, databaseUrl: undefined });
  site = await startConsole({ signUp: "open", store });
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
  const attributionLimits = { endUserBudgetMicroUsd: 300_000n, endUserBudgetPeriod: BudgetPeriod.MONTH };
  keyId = (await bob.key.create({ name: "app", attributionLimits })).key!.id;
});
afterEach(async () => {
  site.close();
  await store.close();
  rmSync(dataDir, { recursive: true });
});

const ANN = { holder: BudgetHolder.END_USER, name: "ann@example.com" };

it("an end user gets a budget of its own, and the key's again; the audit log has no e-mail address", async () => {
  const own = await bob!.attribution.setBudget({ keyId, ...ANN, budgetMicroUsd: 500_000n });
  const budget = {
    name: ANN.name,
    spentMicroUsd: 0n,
    heldMicroUsd: 0n,
    budgetMicroUsd: 500_000n,
    leftMicroUsd: 500_000n,
    isOwn: true,
  };
  expect(own.budget).toMatchObject(budget);
  const month = new Date(site.access.clock.now()).toISOString().slice(0, 7);
  const listed = await bob!.attribution.listBudgets({ keyId, holder: ANN.holder, search: "ANN" });
  expect(listed).toMatchObject({ budgets: [budget], count: 1n, budgetMicroUsd: 300_000n, period: month });
  expect(new Date(Number(listed.resetTime!.seconds) * 1_000).toISOString()).toMatch(/-01T00:00:00\.000Z$/);
  site.access.clock.advance(2_000);
  await bob!.attribution.setBudget({ keyId, ...ANN });
  const [after] = (await bob!.attribution.listBudgets({ keyId, holder: ANN.holder })).budgets;
  expect(after).toMatchObject({ budgetMicroUsd: 300_000n, isOwn: false });
  const entries = await store.audit.list({ limit: 100 });
  const changes = entries.filter(({ action }) => action === "attributed_budget_changed");
  expect(changes.map((each) => each.after)).toMatchObject([
    expect.stringContaining("300000"),
    expect.stringContaining("500000"),
  ]);
  expect(JSON.stringify(entries)).not.toContain("ann@");
});

it("pages continue one another, and a key without such budgets has an empty list", async () => {
  for (const name of ["a", "b", "c"]) {
    site.access.clock.advance(2_000);
    await bob!.attribution.setBudget({ keyId, holder: ANN.holder, name, budgetMicroUsd: 1n });
  }
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await ada!.attribution.listBudgets({ keyId, holder: ANN.holder, limit: 2, pageToken });
    names.push(...page.budgets.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(names.toSorted()).toEqual(["a", "b", "c"]);
  const sessions = await bob!.attribution.listBudgets({ keyId, holder: BudgetHolder.SESSION });
  expect(sessions).toMatchObject({ budgets: [], count: 0n, period: "" });
  expect(sessions.budgetMicroUsd).toBeUndefined();
});

it.each([
  ["no holder", { name: "ann" }, /holder/],
  ["no name", { holder: ANN.holder }, /name/],
  ["a name that calls do not have", { holder: ANN.holder, name: " ann " }, /stored as "ann"/],
  ["too large a budget", { ...ANN, budgetMicroUsd: 1_000_000_000_000_001n }, /budget_micro_usd/],
  ["a negative budget", { ...ANN, budgetMicroUsd: -1n }, /budget_micro_usd/],
  ["a kind without a budget", { holder: BudgetHolder.SESSION, name: "run" }, /set one first/],
])("refuses %s", async (_, request, message) => {
  await expect(bob!.attribution.setBudget({ keyId, ...request })).rejects.toThrow(message);
});

it("refuses a wrong page, the key of somebody else, and of a developer one that an administrator has limited", async () => {
  const list = { keyId, holder: ANN.holder };
  await expect(bob!.attribution.listBudgets({ ...list, pageToken: "nonsense" })).rejects.toThrow(/page_token/);
  await expect(bob!.attribution.listBudgets({ ...list, limit: 101 })).rejects.toThrow(/limit/);
  await expect(bob!.attribution.listBudgets({ ...list, search: "x".repeat(201) })).rejects.toThrow(/search/);
  const cyd = await site.signedUp("cyd");
  await expect(cyd.attribution.listBudgets(list)).rejects.toThrow(/key_id: there is no key/);
  await expect(cyd.attribution.setBudget({ keyId, ...ANN })).rejects.toThrow(/key_id: there is no key/);
  site.access.clock.advance(2_000);
  await ada!.key.update({ id: keyId, limits: { requestsPerMinute: 7n } });
  site.access.clock.advance(2_000);
  await expect(bob!.attribution.setBudget({ keyId, ...ANN, budgetMicroUsd: 1n })).rejects.toThrow(/locked/);
  await ada!.attribution.setBudget({ keyId, ...ANN, budgetMicroUsd: 1n });
  await ada!.key.revoke({ id: keyId });
  site.access.clock.advance(2_000);
  await expect(ada!.attribution.setBudget({ keyId, ...ANN })).rejects.toThrow(/revoked/);
});
