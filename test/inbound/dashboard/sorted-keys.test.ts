import { rmSync } from "node:fs";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KeyOrder, type ListKeysRequest } from "../../../gen/parley/console/v1/key_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import { monthOf } from "../../../src/core/clock.ts";
import { connect } from "../../../src/store/database.ts";
import { sortedKeyIds } from "../../../src/store/access/sorted-keys.ts";
import { openStore, type Store } from "../../../src/store/store.ts";
import { entry } from "../../store/contracts/entries.ts";
import { makeDataDir } from "../../support/data-dir.ts";
import { errorOf, fieldOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

let dataDir: string;
let store: Store;
let site: ConsoleUnderTest;
/** An owner, a member, and a member of no team. */
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };
let cat: Browser & { readonly id: string };

beforeEach(async () => {
  dataDir = await makeDataDir("parley-sorted-keys-");
  store = await openStore({ dataDir, databaseUrl: undefined });
  site = await startConsole({ signUp: "open", store, ledger: store.ledger });
  [ada, bob, cat] = [await site.signedUp("ada"), await site.signedUp("bob"), await site.signedUp("cat")];
});
afterEach(async () => {
  site.close();
  await store.close();
  rmSync(dataDir, { recursive: true });
});

type Asked = Partial<Pick<ListKeysRequest, "order" | "descending" | "active" | "find" | "modelId" | "accountId">>;

/** Names of all pages. */
async function namesOf(of: Browser, asked: Asked, limit = 3): Promise<string[]> {
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await of.key.list({ ...asked, limit, pageToken });
    expect(page.keys.length).toBeLessThanOrEqual(limit);
    expect(page.omittedUntil).toBeUndefined();
    names.push(...page.keys.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return names;
}

describe("sorted keys", () => {
  it("come in every order, page by page, with what they have spent and when they were used", async () => {
    const ids: string[] = [];
    for (const [name, budget] of [
      ["beta", 3n],
      ["Alpha", undefined],
      ["gamma", 1n],
      ["delta", 3n],
    ] as const) {
      const limits = budget === undefined ? {} : { monthlyBudgetMicroUsd: budget };
      ids.push((await ada.key.create({ name, limits })).key!.id);
      site.access.clock.advance(1_000);
    }
    await ada.key.create({ name: "short", lifetime: { seconds: 600n } });
    const nowMs = site.access.clock.now();
    await store.ledger.insert(
      ([5, 0, 9, 7] as const).flatMap((costMicroUsd, index) =>
        costMicroUsd === 0
          ? []
          : [
              entry({
                keyId: ids[index]!,
                keyFamilyId: ids[index]!,
                accountId: ada.id,
                costMicroUsd,
                startedAtMs: nowMs + (4 - index) * 120_000,
                endedAtMs: nowMs + (4 - index) * 120_000,
              }),
            ],
      ),
    );
    const sorted = (order: KeyOrder, descending = false) => namesOf(ada, { order, descending });
    expect(await sorted(KeyOrder.UNSPECIFIED)).toEqual(["beta", "Alpha", "gamma", "delta", "short"]);
    expect(await sorted(KeyOrder.UNSPECIFIED, true)).toEqual(["short", "delta", "gamma", "Alpha", "beta"]);
    expect(await sorted(KeyOrder.NAME)).toEqual(["Alpha", "beta", "delta", "gamma", "short"]);
    expect(await sorted(KeyOrder.SPENT, true)).toEqual(["gamma", "delta", "beta", "short", "Alpha"]);
    expect(await sorted(KeyOrder.BUDGET)).toEqual(["gamma", "beta", "delta", "Alpha", "short"]);
    expect(await sorted(KeyOrder.BUDGET, true)).toEqual(["delta", "beta", "gamma", "short", "Alpha"]);
    expect(await sorted(KeyOrder.LAST_USE, true)).toEqual(["beta", "gamma", "delta", "short", "Alpha"]);
    expect(await sorted(KeyOrder.EXPIRY)).toEqual(["short", "beta", "Alpha", "gamma", "delta"]);
    const { keys } = await ada.key.list({ order: KeyOrder.SPENT, descending: true, limit: 1 });
    expect([keys[0]!.monthSpentMicroUsd, timestampMs(keys[0]!.lastUseTime!)]).toEqual([9n, nowMs + 240_000]);
    // The single key has the same.
    const { key } = await ada.key.get({ id: ids[2]! });
    expect(key).toEqual(keys[0]);
  });

  it("are none missing and none twice, whatever their values, the order and the size of pages", async () => {
    const { key: first } = await ada.key.create({ name: "first" });
    const record = (await store.keys.find(first!.id))!;
    for (let index = 0; index < 40; index += 1) {
      const id = `key_${index}`;
      const limits = { ...record.limits, monthlyBudgetMicroUsd: index % 5 === 0 ? undefined : index % 3 };
      const times = { createdAtMs: 1_000 + (index % 4), lastUsedAtMs: index % 7 === 0 ? undefined : index % 2 };
      const name = ["b", "B", "a"][index % 3]!;
      await store.keys.insert({ hash: id, record: { ...record, id, keyFamilyId: id, name, limits, ...times } });
    }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(0, 1, 2, 3, 4, 5),
        fc.boolean(),
        fc.integer({ min: 1, max: 45 }),
        async (order, descending, limit) => {
          const seen: string[] = [];
          let pageToken = "";
          do {
            const page = await ada.key.list({ order, descending, active: true, limit, pageToken });
            seen.push(...page.keys.map(({ id }) => id));
            pageToken = page.nextPageToken;
          } while (pageToken !== "");
          expect(seen).toHaveLength(41);
          expect(new Set(seen).size).toBe(41);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("are those that the caller may see: of the own account and the teams, for owners all", async () => {
    const { team } = await ada.team.create({ name: "Search" });
    const teamId = team!.account!.id;
    await ada.team.setMember({ teamId, accountId: bob.id, role: TeamRole.VIEWER });
    await ada.key.create({ name: "ada's" });
    await bob.key.create({ name: "bob's" });
    await cat.key.create({ name: "cat's" });
    const { key: ofTeam } = await ada.key.create({ name: "team's", accountId: teamId });
    const sorted: Asked = { order: KeyOrder.NAME };
    expect(await namesOf(ada, sorted)).toEqual(["ada's", "bob's", "cat's", "team's"]);
    expect(await namesOf(bob, sorted)).toEqual(["bob's", "team's"]);
    expect(await namesOf(cat, { active: true })).toEqual(["cat's"]);
    expect(await namesOf(ada, { ...sorted, accountId: teamId })).toEqual(["team's"]);
    // By the owner's name.
    expect(await namesOf(bob, { find: "SEARCH team" })).toEqual(["team's"]);
    expect(await namesOf(cat, { find: "search" })).toEqual([]);
    expect((await errorOf(cat.key.list({ ...sorted, accountId: teamId }))).code).toBe(Code.PermissionDenied);
    expect((await bob.key.get({ id: ofTeam!.id })).key!.name).toBe("team's");
    for (const id of [ofTeam!.id, "key_none", ""]) expect(await fieldOf(cat.key.get({ id }))).toBe("id");
    // Another's page token opens nothing of theirs.
    const { nextPageToken } = await ada.key.list({ ...sorted, limit: 1 });
    expect((await cat.key.list({ ...sorted, pageToken: nextPageToken })).keys.map(({ name }) => name)).toEqual([
      "cat's",
    ]);
  });

  it("are those that work, that match words, or that may use a model", async () => {
    await ada.key.create({ name: "all models" });
    await ada.key.create({ name: "one model", models: { ids: ["words"] } });
    const { key } = await ada.key.create({ name: "revoked model", models: { ids: ["pictures"] } });
    await ada.key.revoke({ id: key!.id });
    const order = KeyOrder.NAME;
    expect(await namesOf(ada, { order, active: true })).toEqual(["all models", "one model"]);
    expect(await namesOf(ada, { order, active: false })).toEqual(["revoked model"]);
    expect(await namesOf(ada, { order, modelId: "words" })).toEqual(["all models", "one model"]);
    expect(await namesOf(ada, { order, modelId: "pictures", active: true })).toEqual(["all models"]);
    expect(await namesOf(ada, { find: " MODEL  one " })).toEqual(["one model"]);
  });

  it("know the first key of their family", async () => {
    const { key: first } = await ada.key.create({ name: "first" });
    const { key: second } = await ada.key.rotate({ id: first!.id });
    const { keys } = await ada.key.list({ descending: true });
    expect(keys.map(({ familyId }) => familyId)).toEqual([first!.id, first!.id]);
    expect((await ada.key.get({ id: first!.id })).key!.replacedBy).toBe(second!.id);
  });

  it.each([
    [{ order: 77 as KeyOrder }, "order"],
    [{ find: "x".repeat(201) }, "find"],
    [{ modelId: "x".repeat(257) }, "model_id"],
    [{ descending: true, limit: 1_001 }, "limit"],
    [{ descending: true, pageToken: "x' OR 1=1" }, "page_token"],
    [{ order: KeyOrder.NAME, pageToken: toToken([1, 2, "key"]) }, "page_token"],
    [{ order: KeyOrder.NAME, pageToken: toToken(["\0", 2, "key"]) }, "page_token"],
    [{ order: KeyOrder.SPENT, pageToken: toToken(["a", 2, "key"]) }, "page_token"],
    [{ order: KeyOrder.SPENT, pageToken: toToken([1.5, 2, "key"]) }, "page_token"],
    [{ order: KeyOrder.SPENT, pageToken: toToken([1, 2]) }, "page_token"],
    [{ order: KeyOrder.SPENT, pageToken: toToken({ length: 3 }) }, "page_token"],
  ])("are refused for an invalid request: %o", async (request, field) => {
    expect(await fieldOf(ada.key.list(request))).toBe(field);
  });
});

function toToken(content: unknown): string {
  return Buffer.from(JSON.stringify(content)).toString("base64url");
}

it("only a bounded number of the latest keys is sorted, which the answer tells", async () => {
  const { key } = await ada.key.create({ name: "key" });
  const record = (await store.keys.find(key!.id))!;
  for (let index = 1; index <= 9; index += 1) {
    const id = `key_${index}`;
    const times = { createdAtMs: 1_000 + Math.floor(index / 3) };
    await store.keys.insert({ hash: id, record: { ...record, id, keyFamilyId: id, name: `${9 - index}`, ...times } });
  }
  const database = await connect({ dataDir, databaseUrl: undefined });
  const nowMs = site.access.clock.now();
  const query = { order: "name", isDescending: false, limit: 3, nowMs, month: monthOf(nowMs) } as const;
  // Of those that were made at the same time the ones with the larger IDs.
  const first = await sortedKeyIds(database, query, { window: 5 });
  expect(first).toMatchObject({ ids: ["key_9", "key_8", "key_7"], omittedUntilMs: 1_001 });
  const second = await sortedKeyIds(database, { ...query, after: first.next }, { window: 5 });
  expect(second).toEqual({ ids: ["key_6", key!.id], next: undefined, omittedUntilMs: 1_001 });
  expect(await sortedKeyIds(database, { ...query, accountIds: [ada.id] }, { window: 10 })).toMatchObject({
    omittedUntilMs: undefined,
  });
  await database.close();
});
