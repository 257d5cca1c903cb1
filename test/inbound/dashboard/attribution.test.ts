import { afterEach, beforeEach, expect, it } from "vitest";
import { BudgetHolder } from "../../../gen/parley/console/v1/attribution_pb.js";
import { BudgetPeriod, RotationGrace } from "../../../gen/parley/console/v1/key_pb.js";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

type Person = Browser & { readonly id: string };

let store: MemoryStores;
let site: ConsoleUnderTest;
let [ada, bob]: Person[] = [];
/** A key of Bob's, with 0.30 USD a month for each end user. */
let keyId: string;

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  store = site.access.stores;
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
  const attributionLimits = { endUserBudgetMicroUsd: 300_000n, endUserBudgetPeriod: BudgetPeriod.MONTH };
  keyId = (await bob.key.create({ name: "app", attributionLimits })).key!.id;
});
afterEach(() => site.close());

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
  await expect(bob!.attribution.listBudgets({ ...list, search: "\0" })).rejects.toThrow(/search/);
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

it("refuses a key that has expired after its rotation: its successor, locked since, has the same end users", async () => {
  const { key: next } = await bob!.key.rotate({ id: keyId, grace: RotationGrace.NONE });
  await ada!.key.update({ id: next!.id, limits: { requestsPerMinute: 7n } });
  const own = { ...ANN, budgetMicroUsd: 900_000_000n };
  await expect(bob!.attribution.setBudget({ keyId, ...own })).rejects.toThrow(/key_id: key_\w+ is expired/);
  const { budgets } = await bob!.attribution.listBudgets({ keyId: next!.id, holder: ANN.holder });
  expect(budgets).toEqual([]);
});

it("an account's lists are read one after the other, as reports are", async () => {
  let began = 0;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const list: MemoryStores["attributedBudgets"]["list"] = async () => {
    began += 1;
    await ended;
    return { budgets: [], count: 0 };
  };
  const slow = await startConsole({
    signUp: "open",
    store: { ...store, attributedBudgets: { ...store.attributedBudgets, list } },
  });
  const eve = await slow.signedUp("eve");
  const { key } = await eve.key.create({ name: "app", attributionLimits: { endUserBudgetMicroUsd: 1n } });
  const lists = [1, 2].map(() => eve.attribution.listBudgets({ keyId: key!.id, holder: ANN.holder }));
  await expect.poll(() => began).toBe(1);
  await eve.session.getSession({});
  expect(began).toBe(1);
  end();
  await Promise.all(lists);
  expect(began).toBe(2);
  slow.close();
});
