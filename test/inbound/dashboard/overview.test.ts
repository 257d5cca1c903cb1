import { Code } from "@connectrpc/connect";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TargetState } from "../../../gen/parley/console/v1/overview_pb.js";
import { createKey, updateKey } from "../../../src/access/keys.ts";
import { monthOf } from "../../../src/core/clock.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { entry } from "../../store/contracts/entries.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let store: MemoryStores;
let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };
let nowMs: number;

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  store = site.access.stores;
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
  nowMs = site.access.clock.now();
});
afterEach(() => site.close());

const at = (startedAtMs: number, changes: Parameters<typeof entry>[0] = {}) =>
  entry({ startedAtMs, endedAtMs: startedAtMs + 10, costMicroUsd: 1_000, firstContentMs: 20, ...changes });

describe("the overview", () => {
  it("has the cost of today and of the month, and what the month comes to at the rate of the last week", async () => {
    await store.ledger.insert([
      at(nowMs, { accountId: bob.id }),
      at(nowMs - 2 * DAY_MS, { accountId: bob.id }),
      at(nowMs, { accountId: ada.id }),
    ]);
    const { spending } = await bob.overview.get({});
    const now = new Date(nowMs);
    const leftMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - nowMs;
    const isSameMonth = monthOf(nowMs) === monthOf(nowMs - 2 * DAY_MS);
    const month = isSameMonth ? 2_000 : 1_000;
    expect(spending).toMatchObject({ month: monthOf(nowMs), todayMicroUsd: 1_000n, monthMicroUsd: BigInt(month) });
    expect(Number(spending?.forecastMicroUsd)).toBeCloseTo(month + (2_000 * leftMs) / (7 * DAY_MS), -1);
    expect(spending).not.toHaveProperty("budgetMicroUsd", expect.anything());
    expect((await ada.overview.get({})).spending).toMatchObject({ todayMicroUsd: 2_000n });
  });

  it("has the budget of an account", async () => {
    const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 5_000_000 };
    await site.access.store.update(bob.id, { limits });
    expect((await bob.overview.get({})).spending?.budgetMicroUsd).toBe(5_000_000n);
    expect((await ada.overview.get({ accountId: bob.id })).spending?.budgetMicroUsd).toBe(5_000_000n);
  });

  it("has requests, errors and time to the first content of the last 24 hours, by hour", async () => {
    await store.ledger.insert([
      at(nowMs, { accountId: bob.id }),
      at(nowMs, { accountId: bob.id, outcome: "upstream_timeout", servedModel: undefined }),
      at(nowMs - 3 * HOUR_MS, { accountId: bob.id, firstContentMs: 40 }),
      at(nowMs - 30 * HOUR_MS, { accountId: bob.id }),
      at(nowMs, { accountId: ada.id }),
    ]);
    const refused = { atMs: nowMs, accountId: bob.id, keyId: "key_b", model: "m", outcome: "rate_limited", refused: 4 };
    await store.refusals.add([refused], []);
    const { traffic } = await bob.overview.get({});
    expect(traffic?.total).toMatchObject({ completions: 3n, failed: 1n, refused: 4n });
    expect(traffic?.previous).toMatchObject({ completions: 1n });
    expect(traffic?.previousHours.map(({ sums }) => sums?.completions)).toEqual([1n]);
    expect(timestampMs(traffic!.since!) - timestampMs(traffic!.previousHours[0]!.stepTime!)).toBeGreaterThan(0);
    expect(traffic?.hours.map(({ sums }) => [sums?.completions, sums?.refused])).toEqual([
      [1n, 0n],
      [2n, 4n],
    ]);
    expect(traffic?.latency?.firstContentMs).toMatchObject({ p50: 20, p95: 40 });
    expect(traffic?.latencyHours).toHaveLength(2);
    expect(timestampMs(traffic!.until!) - timestampMs(traffic!.since!)).toBe(DAY_MS);
    expect((await ada.overview.get({})).traffic?.total).toMatchObject({ completions: 4n });
  });

  it("names keys that expire soon, are near their budget or were refused for a limit, each once", async () => {
    const keys = { store: store.keys, clock: site.access.clock };
    const made = async (name: string, lifetimeMs?: number) => (await createKey(keys, { name, lifetimeMs })).record;
    const [soon, later, spent, refused] = [
      await made("soon", 13 * DAY_MS),
      await made("later", 20 * DAY_MS),
      await made("spent", 2 * DAY_MS),
      await made("refused"),
    ];
    const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 10_000 };
    for (const { id } of [soon, spent]) await updateKey(keys, id, { by: "administrator", limits });
    await store.ledger.insert([at(nowMs, { keyId: spent.id, costMicroUsd: 9_000 }), at(nowMs, { keyId: soon.id })]);
    await store.ledger.flush();
    const count = { atMs: nowMs, accountId: refused.accountId, model: "m", refused: 3 };
    await store.refusals.add(
      [
        { ...count, keyId: refused.id, outcome: "rate_limited" },
        { ...count, keyId: refused.id, outcome: "budget_spent" },
        { ...count, keyId: later.id, outcome: "model_not_found" },
        { ...count, accountId: "none", keyId: "none", outcome: "rate_limited" },
      ],
      [],
    );
    const notices = (await ada.overview.get({})).keys;
    expect(
      notices.map(({ name, budgetMicroUsd, limitedRequests, expireTime }) => [
        name,
        Number(budgetMicroUsd),
        Number(limitedRequests),
        expireTime !== undefined,
      ]),
    ).toEqual([
      ["spent", 10_000, 0, true],
      ["soon", 0, 0, true],
      ["refused", 0, 6, false],
    ]);
    expect((await bob.overview.get({})).keys).toEqual([]);
  });

  it("names no keys without the permission to read them", async () => {
    const keys = { store: store.keys, clock: site.access.clock };
    await createKey(keys, { name: "soon", lifetimeMs: DAY_MS });
    expect((await ada.overview.get({})).keys).toHaveLength(1);
    const { secret } = await ada.adminKey.create({ name: "billing", permissions: ["usage.read"] });
    const program = site.browser({ authorization: `Bearer ${secret}` });
    expect((await program.overview.get({})).keys).toEqual([]);
  });

  it("has unhealthy targets and the steps of the first day for administrators only", async () => {
    const failed = { outcome: "upstream_timeout", servedModel: undefined } as const;
    site.rests.set("words", { sinceMs: nowMs, remainingMs: 1_000, isProbed: false });
    await store.ledger.insert([at(nowMs, failed)]);
    const { unhealthyTargets, checklist } = await ada.overview.get({});
    expect(unhealthyTargets).toMatchObject([{ modelIds: ["words"], state: TargetState.CIRCUIT_OPEN }]);
    expect(checklist).toMatchObject({
      providerConnected: false,
      keyCreated: false,
      requestMade: true,
      addressSecured: true,
      database: "sqlite",
    });
    const ofMember = await bob.overview.get({});
    expect(ofMember.unhealthyTargets).toEqual([]);
    expect(ofMember.checklist).toBeUndefined();
  });

  it("refuses other accounts for members, and time zones that do not exist", async () => {
    expect((await errorOf(bob.overview.get({ accountId: ada.id }))).code).toBe(Code.PermissionDenied);
    expect((await errorOf(ada.overview.get({ timeZone: "Mars/Olympus" }))).code).toBe(Code.InvalidArgument);
  });
});
