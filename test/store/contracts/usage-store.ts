import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { LedgerEntry } from "../../../src/core/ledger.ts";
import { offsetsOf } from "../../../src/ledger/time-zone.ts";
import { STEP_MS, type UsageQuery, type UsageSummary, type UsageSums } from "../../../src/ledger/usage-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { entry, NOON } from "./entries.ts";
import { accountNamed } from "./shared-accounts.ts";

const { hour: HOUR_MS, day: DAY_MS } = STEP_MS;

/** A query of all completions as one group and one step. */
const ALL = { sinceMs: 0, untilMs: 2 * NOON, by: "none", step: "all" } as const;

/** Registers the suite that every UsageStore has to pass. */
export function describeUsageStore(open: () => Promise<Store>): void {
  describe("usage", () => {
    it("is summed by model, key, account and outcome, the most expensive first", async () => {
      const { ledger, keys, accounts, usage } = await open();
      const { record } = await createKey({ store: keys, clock: systemClock }, { name: "mine" });
      await accounts.update(DEFAULT_ACCOUNT_ID, { name: "Default" });
      await ledger.insert([
        entry({ keyId: record.id }),
        entry({ keyId: record.id, servedModel: "n", costMicroUsd: 100, partial: true }),
        entry({ servedModel: undefined, outcome: "upstream_timeout", costMicroUsd: 0, estimated: true }),
      ]);
      expect((await usage.summarize({ ...ALL, by: "model" })).rows).toEqual([
        row("n", { partial: 1, costMicroUsd: 100 }),
        row("m", {
          completions: 2,
          failed: 1,
          estimated: 1,
          promptTokens: 20,
          cachedTokens: 4,
          completionTokens: 10,
          reasoningTokens: 2,
          costMicroUsd: 30,
        }),
      ]);
      const named = ({ rows }: UsageSummary) => rows.map(({ group, name, sums }) => [group, name, sums.completions]);
      expect(named(await usage.summarize({ ...ALL, by: "key" }))).toEqual([
        [record.id, "mine", 2],
        ["key_gone", undefined, 1],
      ]);
      expect(named(await usage.summarize({ ...ALL, by: "account" }))).toEqual([[DEFAULT_ACCOUNT_ID, "Default", 3]]);
      expect(named(await usage.summarize({ ...ALL, by: "outcome" }))).toEqual([
        ["served", undefined, 2],
        ["upstream_timeout", undefined, 1],
      ]);
      expect(named(await usage.summarize(ALL))).toEqual([["", undefined, 3]]);
    });

    it("is counted in the hour, and the UTC day, in which a completion started", async () => {
      const { ledger, usage } = await open();
      const midnight = Math.ceil(NOON / DAY_MS) * DAY_MS;
      const starts = [midnight - HOUR_MS - 1, midnight - HOUR_MS, midnight - 1, midnight];
      await ledger.insert(starts.map((startedAtMs) => entry({ startedAtMs, endedAtMs: startedAtMs + 2 * HOUR_MS })));
      const steps = async (step: "hour" | "day", span = {}) =>
        (await usage.summarize({ ...ALL, ...span, step })).rows.map(({ stepMs, sums }) => [stepMs, sums.completions]);
      expect(await steps("hour")).toEqual([
        [midnight - 2 * HOUR_MS, 1],
        [midnight - HOUR_MS, 2],
        [midnight, 1],
      ]);
      expect(await steps("day")).toEqual([
        [midnight - DAY_MS, 3],
        [midnight, 1],
      ]);
      expect(await steps("hour", { sinceMs: midnight - HOUR_MS, untilMs: midnight })).toEqual([
        [midnight - HOUR_MS, 2],
      ]);
      expect(await steps("day", { sinceMs: midnight + HOUR_MS })).toEqual([]);
    });

    it("is counted in the day of a time zone, whose clocks may change", async () => {
      const { ledger, usage } = await open();
      // In Berlin midnight was at 22:00 UTC, and from 25 October 2026, 3:00, on it is at 23:00.
      const saturday = Date.UTC(2026, 9, 23, 22);
      const hours = [0, 23, 24, 48, 49].map((hour) => saturday + hour * HOUR_MS);
      await ledger.insert(hours.map((startedAtMs) => entry({ startedAtMs, endedAtMs: startedAtMs })));
      const offsets = offsetsOf("Europe/Berlin", { sinceMs: saturday, untilMs: saturday + 3 * DAY_MS });
      const days = [
        [saturday, 2],
        [saturday + 24 * HOUR_MS, 2],
        [saturday + 49 * HOUR_MS, 1],
      ];
      const { rows } = await usage.summarize({ ...ALL, step: "day", offsets });
      expect(rows.map(({ stepMs, sums }) => [stepMs, sums.completions])).toEqual(days);
      const { points } = await usage.latency({ ...ALL, step: "day", offsets });
      expect(points.map(({ stepMs, served }) => [stepMs, served])).toEqual(days);
    });

    it("is filtered by account, key, model and outcome", async () => {
      const { ledger, usage } = await open();
      await ledger.insert([
        entry({ accountId: "acct_a", keyId: "key_a", requestedModel: "x", servedModel: "n" }),
        entry({ accountId: "acct_a", keyId: "key_b", servedModel: undefined, outcome: "cancelled" }),
        entry({ accountId: "acct_b", keyId: "key_c", servedModel: undefined, outcome: "upstream_timeout" }),
      ]);
      const count = async (filter: Partial<UsageQuery>) =>
        (await usage.summarize({ ...ALL, ...filter })).rows[0]?.sums.completions ?? 0;
      expect(await count({ accountId: "acct_a" })).toBe(2);
      expect(await count({ accountId: "acct_a", keyId: "key_c" })).toBe(0);
      expect(await count({ keyId: "key_b" })).toBe(1);
      expect(await count({ model: "n" })).toBe(1);
      expect(await count({ model: "x" })).toBe(0);
      expect(await count({ outcome: "served" })).toBe(1);
      expect(await count({ outcome: "failed" })).toBe(2);
      expect(await count({ outcome: "cancelled" })).toBe(1);
    });

    it("has one row per step for all groups beyond maxGroups", async () => {
      const { ledger, usage } = await open();
      const entries = [9, 1, 5, 5, 1].map((costMicroUsd, at) => entry({ keyId: `key_${at}`, costMicroUsd }));
      const later = entry({ keyId: "key_4", costMicroUsd: 20, startedAtMs: NOON + HOUR_MS });
      await ledger.insert([...entries, later]);
      const groups = async (query: Partial<UsageQuery>) =>
        (await usage.summarize({ ...ALL, by: "key", ...query })).rows.map(({ group, sums }) => [
          group,
          sums.costMicroUsd,
        ]);
      expect(await groups({ maxGroups: 2 })).toEqual([
        ["key_4", 21],
        ["key_0", 9],
        ["", 11],
      ]);
      expect(await groups({ maxGroups: 5 })).toHaveLength(5);
      expect(await groups({ maxGroups: 1, step: "hour" })).toEqual([
        ["key_4", 1],
        ["", 20],
        ["key_4", 20],
      ]);
    });

    it("accepts any text as a model", async () => {
      const { ledger, usage } = await open();
      await ledger.insert(["a\0b", "\ud800", "😀".repeat(5_000), ""].map((servedModel) => entry({ servedModel })));
      const groups = (await usage.summarize({ ...ALL, by: "model" })).rows.map(({ group }) => group);
      expect(groups.toSorted()).toEqual(["", "a\uFFFDb", "\uFFFD", "😀".repeat(250)].toSorted());
    });

    it("equals the sum of the entries, however they were inserted, and also after they were pruned", async () => {
      const { ledger, usage } = await open();
      let run = 0;
      const property = fc.asyncProperty(fc.array(someEntry, { maxLength: 60 }), someQuery, async (drawn, query) => {
        const accountId = `acct_run${(run += 1)}`;
        const entries = drawn.map((each) => entry({ ...each, accountId }));
        const half = Math.floor(entries.length / 2);
        const batches = [entries.slice(0, half), entries.slice(half).toReversed(), entries, entries.slice(1)];
        await Promise.all(batches.map((batch) => ledger.insert(batch)));
        while ((await ledger.prune(NOON + HOUR_MS)) > 0);
        const { rows } = await usage.summarize({ ...query, accountId });
        expect(rows.map(({ stepMs, group, sums }) => ({ stepMs, group, sums }))).toEqual(addUp(entries, query));
      });
      await fc.assert(property, { numRuns: 25 });
    });

    it("is summed by end user, session, agent and tag of single entries, each in its step and once in the total", async () => {
      const { ledger, usage } = await open();
      let run = 0;
      const property = fc.asyncProperty(
        fc.array(someEntry, { maxLength: 60 }),
        someAttributionQuery,
        async (drawn, asked) => {
          const accountId = `acct_run${(run += 1)}`;
          const entries = drawn.map((each) => entry({ ...each, accountId, endedAtMs: each.startedAtMs + HOUR_MS }));
          await ledger.insert(entries);
          const { rows, total, cutSinceMs } = await usage.summarize({ ...asked, accountId });
          expect(rows.map(({ stepMs, group, sums }) => ({ stepMs, group, sums }))).toEqual(addUp(entries, asked));
          const [all = { sums: sumsOf([]) }] = addUp(entries, { ...asked, by: "none", step: "all" });
          expect({ sums: total }).toMatchObject({ sums: (all as { readonly sums: UsageSums }).sums });
          expect(cutSinceMs).toBeUndefined();
        },
      );
      await fc.assert(property, { numRuns: 60 });
    });

    it("is summed by team, with what is of people in the row of all others", async () => {
      const { ledger, accounts, usage } = await open();
      for (const [name, kind] of [
        ["red", "team"],
        ["blue", "team"],
        ["bot", "service"],
        ["ann", "person"],
      ] as const)
        await accounts.insert(accountNamed(name, { kind, ...(kind !== "person" && { email: undefined }) }));
      await ledger.insert(
        ["red", "red", "blue", "bot", "ann"].map((name, index) =>
          entry({ accountId: `acct_${name}`, costMicroUsd: 100 - index, attribution: { session: "s" } }),
        ),
      );
      for (const filter of [{}, { session: "s" }]) {
        const asked = { ...ALL, by: "team", ...filter } as const;
        const { rows, total } = await usage.summarize({ ...asked, maxGroups: 2 });
        expect(rows.map(({ group, name, sums }) => [group, name, sums.costMicroUsd])).toEqual([
          ["acct_red", "red", 199],
          ["acct_blue", "blue", 98],
          ["", undefined, 97 + 96],
        ]);
        expect(total.costMicroUsd).toBe(490);
        expect((await usage.summarize({ ...asked, accountId: "acct_ann", step: "day" })).rows).toMatchObject([
          { group: "", sums: { costMicroUsd: 96 } },
        ]);
      }
    });

    it("is pruned by whole past months", async () => {
      const { ledger, usage } = await open();
      const startedAtMs = NOON - 31 * 24 * HOUR_MS;
      await ledger.insert(Array.from({ length: 1_500 }, (_, at) => entry({ startedAtMs, keyId: `key_${at}` })));
      await ledger.insert([entry()]);
      while ((await usage.prune(NOON)) > 0);
      expect((await usage.summarize(ALL)).rows[0]?.sums.completions).toBe(1);
    });
  });

  describe("latency", () => {
    it("is the nearest rank of served completions, overall and by step", async () => {
      const { ledger, usage } = await open();
      const took = (durationMs: number, changes: Partial<LedgerEntry> = {}) => entry({ durationMs, ...changes });
      await ledger.insert([
        ...Array.from({ length: 100 }, (_, at) => took(100.5 - at, { firstContentMs: at < 20 ? 20 - at : undefined })),
        took(7, { endedAtMs: NOON + HOUR_MS }),
        took(9_999, { outcome: "upstream_timeout", servedModel: undefined }),
      ]);
      const { overall, points, sinceMs } = await usage.latency({ ...ALL, step: "hour" });
      expect(sinceMs).toBe(NOON + 1500);
      expect(overall).toEqual({
        stepMs: undefined,
        served: 101,
        durationMs: { p50: 50.5, p95: 95.5, p99: 99.5 },
        firstContentMs: { p50: 10, p95: 19, p99: 20 },
      });
      expect(points).toEqual([
        {
          stepMs: NOON,
          served: 100,
          durationMs: { p50: 50.5, p95: 95.5, p99: 99.5 },
          firstContentMs: { p50: 10, p95: 19, p99: 20 },
        },
        {
          stepMs: NOON + HOUR_MS,
          served: 1,
          durationMs: { p50: 7, p95: 7, p99: 7 },
          firstContentMs: undefined,
        },
      ]);
      expect((await usage.latency(ALL)).points).toEqual([]);
    });

    it("is selected by the end of completions, and filtered like sums", async () => {
      const { ledger, usage } = await open();
      const endedAtMs = NOON + HOUR_MS;
      await ledger.insert([
        entry({ endedAtMs, accountId: "acct_a", keyId: "key_a", servedModel: "n" }),
        entry({ endedAtMs, accountId: "acct_b", keyId: "key_b", outcome: "cancelled" }),
      ]);
      const served = async (filter: Partial<UsageQuery>) =>
        (await usage.latency({ ...ALL, ...filter })).overall?.served ?? 0;
      for (const filter of [{}, { accountId: "acct_a" }, { keyId: "key_a", accountId: "acct_a" }, { model: "n" }])
        expect(await served(filter)).toBe(1);
      const none = [{ accountId: "acct_b" }, { keyId: "key_a", accountId: "acct_b" }, { model: "m" }];
      for (const filter of [...none, { outcome: "failed" }, { untilMs: endedAtMs }, { sinceMs: endedAtMs + 1 }])
        expect(await served(filter)).toBe(0);
      expect(await served({ outcome: "served" })).toBe(1);
      expect(await usage.latency({ ...ALL, model: "none" })).toEqual({
        overall: undefined,
        points: [],
        sinceMs: undefined,
      });
    });
  });
}

const someEntry = fc.record({
  startedAtMs: fc.integer({ min: 0, max: 3 * DAY_MS }).map((offsetMs) => NOON + offsetMs),
  keyId: fc.constantFrom("key_a", "key_b", "key_c"),
  requestedModel: fc.constantFrom("m", "n"),
  servedModel: fc.constantFrom(undefined, "m", "o"),
  outcome: fc.constantFrom("served" as const, "cancelled" as const, "upstream_timeout" as const),
  tokens: fc.record({
    prompt: fc.nat(5_000),
    cached: fc.nat(50),
    completion: fc.nat(5_000),
    reasoning: fc.nat(50),
    image: fc.nat(50),
  }),
  costMicroUsd: fc.nat(2),
  partial: fc.boolean(),
  estimated: fc.boolean(),
  attribution: fc.constantFrom(
    undefined,
    { endUser: "ann", session: "s1", agent: "claude-cli", tags: ['a "quoted" tag', "a", "ä=1"] },
    { endUser: "ben", session: "s2", agent: "codex_exec", tags: ["a"] },
    { session: "s1", tags: ["b,", ",c", '","', "it's"] },
    { endUser: "ann", session: "s2", agent: "claude-cli" },
  ),
});

const commonFields = {
  sinceMs: fc.nat(30).map((hours) => NOON + hours * HOUR_MS),
  untilMs: fc.nat(60).map((hours) => NOON + (20 + hours) * HOUR_MS),
  step: fc.constantFrom("all" as const, "hour" as const, "day" as const),
  maxGroups: fc.constantFrom(undefined, 1, 2),
  outcome: fc.constantFrom(undefined, "served", "failed"),
};

const someQuery: fc.Arbitrary<UsageQuery> = fc.record({
  ...commonFields,
  by: fc.constantFrom("none" as const, "model" as const, "key" as const, "outcome" as const),
});

/** Queries that add up single entries. */
const someAttributionQuery: fc.Arbitrary<UsageQuery> = fc.oneof(
  fc.record({
    ...commonFields,
    by: fc.constantFrom("endUser" as const, "session" as const, "agent" as const, "tag" as const),
    session: fc.constantFrom(undefined, "s2"),
  }),
  fc.record({
    ...commonFields,
    by: fc.constantFrom("none" as const, "model" as const, "key" as const, "outcome" as const, "tag" as const),
    endUser: fc.constantFrom(undefined, "ann"),
    agent: fc.constantFrom(undefined, "claude-cli"),
    tag: fc.constantFrom("a", 'a "quoted" tag', "quoted", " tag", ",", '","'),
  }),
);

/** The expected answer of the store, computed from the entries. */
function addUp(entries: readonly LedgerEntry[], query: UsageQuery): object[] {
  const matching = entries.filter(
    ({ startedAtMs, outcome, attribution }) =>
      startedAtMs >= query.sinceMs &&
      startedAtMs < query.untilMs &&
      (["endUser", "session", "agent"] as const).every(
        (field) => query[field] === undefined || attribution?.[field] === query[field],
      ) &&
      (query.tag === undefined || attribution?.tags?.includes(query.tag) === true) &&
      (query.outcome === undefined || (query.outcome === "served") === (outcome === "served")),
  );
  /** What is of no group is among the others. */
  const groupsOf = ({ attribution, ...each }: LedgerEntry): readonly (string | undefined)[] =>
    ({
      none: [""],
      model: [each.servedModel ?? each.requestedModel],
      key: [each.keyId],
      account: [each.accountId],
      team: [undefined],
      outcome: [each.outcome],
      endUser: [attribution?.endUser],
      session: [attribution?.session],
      agent: [attribution?.agent],
      tag: attribution?.tags ?? [undefined],
    })[query.by];
  const placed = matching.flatMap((each) => groupsOf(each).map((group) => ({ group, each })));
  const totals = Map.groupBy(
    placed.filter(({ group }) => group !== undefined),
    ({ group }) => group!,
  );
  const ordered = [...totals].toSorted(([a, left], [b, right]) => {
    const [x, y] = [sumsOf(left.map(({ each }) => each)), sumsOf(right.map(({ each }) => each))];
    return y.costMicroUsd - x.costMicroUsd || y.completions - x.completions || (a < b ? -1 : 1);
  });
  const shown = ordered.slice(0, query.maxGroups ?? ordered.length).map(([group]) => group);
  const places = [...shown, ""];
  const lengthMs = query.step === "all" ? undefined : STEP_MS[query.step];
  const stepOf = ({ startedAtMs }: LedgerEntry) => lengthMs && Math.floor(startedAtMs / lengthMs) * lengthMs;
  const steps = [...Map.groupBy(placed, ({ each }) => stepOf(each))].toSorted(([a = 0], [b = 0]) => a - b);
  return steps.flatMap(([stepMs, ofStep]) => {
    const byPlace = Map.groupBy(ofStep, ({ group }) => {
      const place = group === undefined ? -1 : shown.indexOf(group);
      return place === -1 ? shown.length : place;
    });
    const sorted = [...byPlace].toSorted(([a], [b]) => a - b);
    return sorted.map(([place, ofGroup]) => ({
      stepMs,
      group: places[place],
      sums: sumsOf(ofGroup.map(({ each }) => each)),
    }));
  });
}

function sumsOf(entries: readonly LedgerEntry[]): UsageSums {
  const add = (of: (each: LedgerEntry) => number): number => entries.reduce((sum, each) => sum + of(each), 0);
  return {
    completions: entries.length,
    failed: add(({ outcome }) => (outcome === "served" ? 0 : 1)),
    partial: add(({ partial }) => (partial ? 1 : 0)),
    estimated: add(({ estimated }) => (estimated ? 1 : 0)),
    promptTokens: add(({ tokens }) => tokens.prompt),
    cachedTokens: add(({ tokens }) => tokens.cached),
    completionTokens: add(({ tokens }) => tokens.completion),
    reasoningTokens: add(({ tokens }) => tokens.reasoning),
    imageTokens: add(({ tokens }) => tokens.image),
    costMicroUsd: add(({ costMicroUsd }) => costMicroUsd),
    ownCostMicroUsd: add(({ ownCostMicroUsd = 0 }) => ownCostMicroUsd),
    refused: 0,
  };
}

/** The row of one default entry, with `changes`. */
function row(group: string, changes: Partial<UsageSums>): object {
  const one = {
    completions: 1,
    failed: 0,
    partial: 0,
    estimated: 0,
    promptTokens: 10,
    cachedTokens: 2,
    completionTokens: 5,
    reasoningTokens: 1,
    imageTokens: 0,
    costMicroUsd: 30,
    ownCostMicroUsd: 0,
    refused: 0,
  };
  return { group, name: undefined, stepMs: undefined, sums: { ...one, ...changes } };
}
