import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ExportFormat, RequestOrder } from "../../../gen/parley/console/v1/request_pb.js";
import { exportRequests } from "../../../src/inbound/dashboard/request-export.ts";
import { createSortedLog } from "../../../src/store/ledger/sorted-log.ts";
import { entry, NOON } from "../../store/contracts/entries.ts";
import { attemptOf } from "../../support/attempt.ts";
import { writeHistory } from "../../support/history.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

let store: MemoryStores;
let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  store = site.access.stores;
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
});
afterEach(() => site.close());

/** The file of an export, the number of its requests and of its pieces. */
async function exported(of: Browser, asked: Parameters<Browser["request"]["export"]>[0]) {
  const pieces: Uint8Array[] = [];
  let count = 0;
  let isCut = false;
  for await (const piece of of.request.export(asked)) {
    pieces.push(piece.data);
    count += piece.count;
    isCut ||= piece.isCut;
  }
  return { text: Buffer.concat(pieces).toString(), count, isCut, pieces: pieces.length };
}

/** Reads without waiting for a turn. */
function atOnce<T>(read: () => Promise<T>): Promise<T> {
  return read();
}

describe("an export of requests", () => {
  it("has a JSON object for each request, with its attempts and the fields that were changed", async () => {
    const sent = entry({
      accountId: bob.id,
      endedAtMs: NOON + 1,
      costMicroUsd: 1_234_567,
      attempts: [
        attemptOf({ startMs: 1, sentMs: 2, headMs: 3, firstContentMs: 4, durationMs: 5, upstreamStatus: 200 }),
      ],
      details: { format: "openai-chat", client: "curl/8", finishReason: 4, omitted: [{ field: "seed", reason: 1 }] },
    });
    await store.ledger.insert([sent, entry({ accountId: bob.id, endedAtMs: NOON })]);
    const { text, count, isCut } = await exported(bob, {});
    const objects = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect([count, isCut, objects.length]).toEqual([2, false, 2]);
    expect(objects[0]).toMatchObject({
      id: sent.completionId,
      start_time: "2026-11-21T12:00:00.000Z",
      status: "served",
      refused: false,
      requested_model: "m",
      format: "openai-chat",
      client: "curl/8",
      prompt_tokens: 10,
      cost_usd: 1.234567,
      duration_ms: 1500,
      first_content_ms: null,
      finish_reason: "content_filter",
      attempts: [{ model: "m", status: "served", http_status_code: 200, start_ms: 1, sent_ms: 2, head_ms: 3 }],
      omitted: [{ field: "seed", reason: "unsupported" }],
      clamped: [],
    });
  });

  it("has a row for each request as CSV, in which no text is a formula, and refused requests", async () => {
    await store.ledger.insert([
      entry({ accountId: ada.id, requestedModel: "=HYPERLINK(1)", details: { client: '+cmd,"x"' } }),
    ]);
    const refused = entry({ accountId: ada.id, outcome: "rate_limited", endedAtMs: NOON, requestId: "@refused" });
    await store.refusals.add([], [{ entry: refused, message: "-Slow\ndown." }]);
    const { text, count } = await exported(ada, { format: ExportFormat.CSV });
    const [names = "", ...rows] = text.split("\r\n");
    expect(count).toBe(2);
    expect(names).toMatch(/^id,request_id,start_time,end_time,status,refused,requested_model,/);
    expect(rows[0]).toContain(",'=HYPERLINK(1),");
    expect(rows[0]).toContain(`,"'+cmd,""x""",`);
    expect(rows[1]).toContain(",'@refused,");
    expect(rows[1]).toMatch(/,rate_limited,true,.*,"'-Slow\ndown\."$/);
  });

  it("is of the filter, and of one's own account for members", async () => {
    await store.ledger.insert([
      entry({ accountId: ada.id, outcome: "upstream_timeout" }),
      entry({ accountId: bob.id }),
      entry({ accountId: bob.id, outcome: "cancelled" }),
    ]);
    expect((await exported(ada, {})).count).toBe(3);
    expect((await exported(ada, { filter: { outcome: "failed" } })).count).toBe(2);
    expect((await exported(bob, { filter: { outcome: "failed" } })).count).toBe(1);
    const codeOf = (asked: Parameters<typeof exported>[1]) =>
      exported(bob, asked).catch((error: unknown) => ConnectError.from(error).code);
    expect(await codeOf({ filter: { accountId: ada.id } })).toBe(Code.PermissionDenied);
    expect(await codeOf({ format: 9 as ExportFormat })).toBe(Code.InvalidArgument);
  });

  it("comes in pieces, has the latest requests where there are too many, and says so", async () => {
    await writeHistory(store.ledger, { count: 1_200, accountIds: [ada.id] });
    const whole = await exported(ada, { format: ExportFormat.CSV });
    expect([whole.count, whole.isCut]).toEqual([1_200, false]);
    expect(whole.pieces).toBeGreaterThan(4);
    const ids = whole.text
      .trimEnd()
      .split("\r\n")
      .slice(1)
      .map((row) => row.split(",")[0]);
    expect(new Set(ids).size).toBe(1_200);

    const asked = {
      filter: {},
      view: undefined,
      format: ExportFormat.CSV,
      signal: new AbortController().signal,
      inTurn: atOnce,
      most: 600,
    };
    const ports = { ledger: store.ledger, refusals: store.refusals, keys: site.keys, feed: site.feed };
    const cut: string[] = [];
    let isCut = false;
    for await (const piece of exportRequests(ports, asked)) {
      cut.push(Buffer.from(piece.data).toString());
      isCut = piece.isCut;
    }
    expect(isCut).toBe(true);
    expect(whole.text.startsWith(cut.join(""))).toBe(true);
    expect(cut.join("").trimEnd().split("\r\n")).toHaveLength(601);
  });

  it("is in the order that was asked for, in pieces, and says when earlier ones are left out", async () => {
    await writeHistory(store.ledger, { count: 2_300, accountIds: [ada.id] });
    const costs = async (asked: Parameters<typeof exported>[1]) => {
      const { text, ...counted } = await exported(ada, asked);
      const lines = text.trimEnd().split("\n");
      return { ...counted, costs: lines.map((line) => (JSON.parse(line) as { cost_usd: number }).cost_usd) };
    };
    const highest = await costs({ order: RequestOrder.COST });
    expect(highest.costs).toEqual(highest.costs.toSorted((left, right) => right - left));
    expect(highest).toMatchObject({ count: 2_300, isCut: false });
    expect(highest.pieces).toBeGreaterThan(9);
    expect((await costs({ order: RequestOrder.COST, ascending: true })).costs).toEqual(highest.costs.toReversed());
    expect((await errorOf(costs({ order: 77 as RequestOrder }))).code).toBe(Code.InvalidArgument);

    const ledger = { ...store.ledger, ...createSortedLog(store.database, { window: 1_100 }) };
    const ports = { ledger, refusals: store.refusals, keys: site.keys, feed: site.feed };
    const asked = {
      filter: {},
      view: undefined,
      sort: { order: "time", isAscending: true },
      format: ExportFormat.UNSPECIFIED,
      signal: new AbortController().signal,
      inTurn: atOnce,
    } as const;
    let [count, isCut] = [0, false];
    for await (const piece of exportRequests(ports, asked)) {
      count += piece.count;
      isCut = piece.isCut;
    }
    expect([count, isCut]).toEqual([1_101, true]);
  });

  it("reads each page in a turn of reports, and an account has two at once", async () => {
    await store.ledger.insert([ada, bob].map(({ id }) => entry({ accountId: id })));
    const { ledger } = store;
    const list = ledger.list.bind(ledger);
    const answer = Promise.withResolvers<void>();
    const asked: (string | undefined)[] = [];
    ledger.list = async (query) => {
      asked.push(query.accountId);
      await answer.promise;
      return list(query);
    };
    const of = (browser: typeof ada) => exported(browser, { filter: { accountId: browser.id } });
    const open = [of(ada), of(ada)];
    await expect.poll(() => asked).toEqual([ada.id]);
    expect((await errorOf(of(ada))).rawMessage).toBe(
      "This account has reached the maximum of 2 exports of requests at once. Wait for one to complete.",
    );
    open.push(of(bob));
    await expect.poll(() => site.calls.active).toBe(3);
    // On SQLite one report is read at a time.
    expect(asked).toEqual([ada.id]);
    answer.resolve();
    expect((await Promise.all(open)).map(({ count }) => count)).toEqual([1, 1, 1]);
    expect((await of(ada)).count).toBe(1);
  });

  it("ends when its reader leaves", async () => {
    await writeHistory(store.ledger, { count: 1_200, accountIds: [ada.id] });
    const controller = new AbortController();
    const ports = { ledger: store.ledger, refusals: store.refusals, keys: site.keys, feed: site.feed };
    const asked = {
      filter: {},
      view: undefined,
      format: ExportFormat.UNSPECIFIED,
      signal: controller.signal,
      inTurn: atOnce,
    };
    const pieces = exportRequests(ports, asked);
    await pieces.next();
    controller.abort();
    expect(await pieces.next()).toMatchObject({ done: true });
  });
});
