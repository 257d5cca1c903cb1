import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";
import { RequestOrder } from "../../../gen/parley/console/v1/request_pb.js";
import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import type { LedgerStore } from "../../../src/ledger/ledger-store.ts";
import { createSortedLog } from "../../../src/store/ledger/sorted-log.ts";
import { entry, NOON } from "../../store/contracts/entries.ts";
import { attemptOf } from "../../support/attempt.ts";
import { refusal } from "./ended-requests.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

const TRACE_URL = "https://traces.example.com/?id={trace_id}";

let store: MemoryStores;
let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };

const start = async (changes: (stores: MemoryStores) => Partial<LedgerStore> = () => ({})): Promise<void> => {
  site = await startConsole({ signUp: "open", traceUrl: () => TRACE_URL });
  store = site.access.stores;
  Object.assign(store.ledger, changes(store));
  // The administrator, and a member.
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
};

afterEach(() => site.close());

describe("sorted requests", () => {
  const costs = Array.from({ length: 25 }, (_, index) => (index * 7) % 25);

  it("come in pages, without refused ones, and members get their own", async () => {
    await start();
    site.feed.record(refusal(ada.id));
    await store.ledger.insert(
      costs.map((costMicroUsd, index) => entry({ costMicroUsd, accountId: index % 5 === 0 ? bob.id : ada.id })),
    );
    const listed = async (of: Browser, ascending = false): Promise<number[]> => {
      const found: number[] = [];
      let pageToken = "";
      do {
        const page = await of.request.list({ order: RequestOrder.COST, ascending, limit: 10, pageToken });
        found.push(...page.requests.map(({ costMicroUsd }) => Number(costMicroUsd)));
        expect(page.sortedSince).toBeUndefined();
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      return found;
    };
    const sorted = (numbers: readonly number[]) => numbers.toSorted((left, right) => right - left);
    expect(await listed(ada)).toEqual(sorted(costs));
    expect(await listed(ada, true)).toEqual(sorted(costs).toReversed());
    expect(await listed(bob)).toEqual(sorted(costs.filter((_, index) => index % 5 === 0)));
  });

  it("are the latest ones where there are too many, on every page, and the answer says since when", async () => {
    await start(({ database }) => createSortedLog(database, { window: 12 }));
    await store.ledger.insert(
      costs.map((costMicroUsd, index) => entry({ costMicroUsd, endedAtMs: NOON + index, durationMs: 0.1 + index })),
    );
    await store.ledger.flush();
    const first = await ada.request.list({ order: RequestOrder.DURATION, limit: 10 });
    expect(timestampMs(first.sortedSince!)).toBe(NOON + 12);
    // Later ones are not part of the list that was begun.
    const second = await ada.request.list({ order: RequestOrder.DURATION, limit: 10, pageToken: first.nextPageToken });
    expect([...first.requests, ...second.requests].map(({ durationMs }) => durationMs)).toEqual(
      Array.from({ length: 13 }, (_, index) => 0.1 + (24 - index)),
    );
    expect(timestampMs(second.sortedSince!)).toBe(NOON + 12);
    expect(second.nextPageToken).toBe("");
    const oldest = await ada.request.list({ ascending: true, limit: 2 });
    expect(timestampMs(oldest.sortedSince!)).toBe(NOON + 12);
    expect(oldest.requests.map(({ endTime }) => timestampMs(endTime!))).toEqual([NOON + 12, NOON + 13]);
    const since = await ada.request.list({ ascending: true, filter: { until: timestampFromMs(NOON + 5) } });
    expect(since.requests.map(({ endTime }) => timestampMs(endTime!) - NOON)).toEqual([0, 1, 2, 3, 4]);
  });

  it("of a made-up token are the latest ones, too", async () => {
    await start(({ database }) => createSortedLog(database, { window: 12 }));
    await store.ledger.insert(costs.map((costMicroUsd, index) => entry({ costMicroUsd, endedAtMs: NOON + index })));
    await store.ledger.flush();
    for (const sinceMs of ["-", "0", `${NOON + 3}`]) {
      const pageToken = Buffer.from(`9999999999999999 999999999999999 z ${sinceMs} 0`).toString("base64url");
      const page = await ada.request.list({ order: RequestOrder.COST, limit: 50, pageToken });
      expect([page.requests.length, timestampMs(page.sortedSince!)]).toEqual([13, NOON + 12]);
    }
  });

  it("of an account do not keep others from theirs", async () => {
    const begun: { readonly accountId: string | undefined; readonly end: () => void }[] = [];
    const listSorted: LedgerStore["listSorted"] = async ({ accountId }) => {
      await new Promise<void>((end) => void begun.push({ accountId, end }));
      return { entries: [], next: undefined, sortedSinceMs: undefined };
    };
    await start(() => ({ listSorted }));
    const list = (of: Browser) => of.request.list({ order: RequestOrder.COST });
    const flood = Array.from({ length: 12 }, () => list(bob));
    await expect.poll(() => site.calls.active).toBe(12);
    // On SQLite one report is read at a time.
    await expect.poll(() => begun.length).toBe(1);
    const single = list(ada);
    await expect.poll(() => site.calls.active).toBe(13);
    const controller = new AbortController();
    const left = ada.request.list({ order: RequestOrder.COST }, { signal: controller.signal }).catch(() => "left");
    await expect.poll(() => site.calls.active).toBe(14);
    controller.abort();
    expect(await left).toBe("left");
    let isServed = false;
    void single.then(() => (isServed = true));
    begun[0]!.end();
    await expect.poll(() => begun.length).toBe(2);
    begun[1]!.end();
    await expect.poll(() => begun.length).toBe(3);
    expect(begun[2]!.accountId).toBeUndefined();
    begun[2]!.end();
    await expect.poll(() => isServed).toBe(true);
    for (let ended = 0; ended < 13; ended += 1) {
      await expect.poll(() => begun.length).toBeGreaterThan(ended);
      begun[ended]!.end();
    }
    await Promise.all(flood);
    expect(begun).toHaveLength(13);
  });

  it("cannot be asked for with an unknown order, nor with the token of another list", async () => {
    await start();
    await store.ledger.insert(costs.map(() => entry()));
    const unknown = await errorOf(ada.request.list({ order: 77 as RequestOrder }));
    expect([unknown.code, unknown.message]).toEqual([Code.InvalidArgument, expect.stringContaining("order")]);
    const { nextPageToken } = await ada.request.list({ limit: 3 });
    const foreign = await errorOf(ada.request.list({ order: RequestOrder.COST, pageToken: nextPageToken }));
    expect(foreign.code).toBe(Code.InvalidArgument);
  });

  it.each([
    ["a fraction of a whole order", "0.5 1 a - 0", RequestOrder.COST],
    ["a fraction of tokens", "1e-3 1 a - 0", RequestOrder.TOKENS],
    ["a time after the year 9999", "9 1 a 253402300800000 1", RequestOrder.DURATION],
  ])("cannot be asked for with a token that has %s", async (_, place, order) => {
    await start();
    const error = await errorOf(
      ada.request.list({ order, pageToken: Buffer.from(place).toString("base64url"), limit: 3 }),
    );
    expect([error.code, error.message]).toEqual([Code.InvalidArgument, expect.stringContaining("page_token")]);
  });
});

describe("the details of a request", () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";

  it("are those of the ledger; the provider's error and the trace's address are for administrators", async () => {
    await start();
    const attempt = attemptOf({ outcome: "upstream_unavailable", providerError: "quota of project 7", sentMs: 4 });
    const detailed = entry({
      accountId: bob.id,
      attempts: [attempt, attemptOf({ startMs: 9, sentMs: 10, headMs: 11, firstContentMs: 12 })],
      details: {
        format: "anthropic",
        client: "claude-cli/2",
        traceId,
        finishReason: FinishReason.TOOL_CALLS,
        omitted: [{ field: "seed", reason: OmissionReason.UNSUPPORTED }],
        omittedCount: 21,
        clamped: [{ field: "temperature", requested: 3, sent: null }],
      },
    });
    await store.ledger.insert([detailed]);
    const seen = {
      format: "anthropic",
      client: "claude-cli/2",
      traceId,
      finishReason: FinishReason.TOOL_CALLS,
      omitted: [{ field: "seed", reason: OmissionReason.UNSUPPORTED }],
      omittedCount: 21,
      clamped: [{ field: "temperature", requested: { kind: { value: 3 } }, sent: { kind: { case: "nullValue" } } }],
    };
    const id = detailed.completionId;
    const byAda = (await ada.request.get({ id })).request!;
    expect(byAda).toMatchObject({ ...seen, traceUrl: `https://traces.example.com/?id=${traceId}` });
    expect(byAda.attemptDetails).toMatchObject([
      { sentMs: 4, providerError: "quota of project 7" },
      { sentMs: 10, headMs: 11, firstContentMs: 12, providerError: "" },
    ]);
    const byBob = (await bob.request.get({ id })).request!;
    expect(byBob).toMatchObject({ ...seen, traceUrl: "" });
    expect(byBob.attemptDetails.map(({ providerError }) => providerError)).toEqual(["", ""]);
    expect(JSON.stringify((await bob.request.list({})).requests, withoutBigints)).not.toContain("quota");
    for await (const { data } of bob.request.export({})) expect(Buffer.from(data).toString()).not.toContain("quota");
  });
});

const withoutBigints = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);
