import { Code } from "@connectrpc/connect";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BadRequestSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { NO_CALLER, type LedgerEntry } from "../../../src/core/ledger.ts";
import { entry, NOON } from "../../store/contracts/entries.ts";
import { kept as keptRecord, refusal } from "./ended-requests.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import { AttemptOutcome } from "../../../gen/parley/v1/report_pb.js";
import { attemptOf } from "../../support/attempt.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

let store: MemoryStores;
let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  store = site.access.stores;
  // The administrator, and a member.
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
});
afterEach(() => site.close());

describe("the list of requests", () => {
  it("is of one's own account for members, whatever they ask", async () => {
    const own = entry({ accountId: bob.id });
    await store.ledger.insert([entry({ accountId: ada.id, keyId: "key_ofAda" }), own]);
    const idsOf = async (of: Browser, filter = {}) => (await of.request.list({ filter })).requests.map(({ id }) => id);
    expect(await idsOf(bob)).toEqual([own.completionId]);
    expect(await idsOf(bob, { keyId: "key_ofAda" })).toEqual([]);
    expect(await idsOf(bob, { accountId: bob.id })).toEqual([own.completionId]);
    expect(await idsOf(ada)).toHaveLength(2);
    expect(await idsOf(ada, { accountId: bob.id })).toEqual([own.completionId]);
    const error = await errorOf(bob.request.list({ filter: { accountId: ada.id } }));
    expect(error.code).toBe(Code.PermissionDenied);
  });

  it("says everything about a request but its prompt and its answer", async () => {
    const { key } = await bob.key.create({ name: "<i>web</i> app" });
    const rate = { limit: 600, remaining: 599, resetMs: 100 };
    const attempt = attemptOf({ upstreamStatus: 200, reason: "Said.", durationMs: 3 });
    const kept = entry({
      keyId: key!.id,
      accountId: bob.id,
      firstContentMs: 200.5,
      attempts: [attempt],
      limits: { requests: rate, tokens: undefined },
    });
    await store.ledger.insert([kept]);
    const { requests } = await bob.request.list({});
    expect(requests).toMatchObject([
      {
        id: kept.completionId,
        requestId: "req",
        accountId: bob.id,
        keyName: "<i>web</i> app",
        requestedModel: "m",
        outcome: "served",
        attempts: [
          {
            model: "m",
            outcome: AttemptOutcome.SERVED,
            httpStatusCode: 200,
            message: "Said.",
            duration: { nanos: 3_000_000 },
          },
        ],
        promptTokens: 10n,
        costMicroUsd: 30n,
        durationMs: 1500.25,
        firstContentMs: 200.5,
        refused: false,
        message: "",
        requestLimit: { limit: 600n, remaining: 599n, resetMs: 100n },
      },
    ]);
    expect(timestampMs(requests[0]!.endTime!)).toBe(kept.endedAtMs);
    expect(requests[0]).not.toHaveProperty("tokenLimit");
  });

  it("is narrowed by key, model, outcome and time", async () => {
    const failed = entry({ outcome: "upstream_timeout", servedModel: undefined, endedAtMs: NOON });
    const fellBack = entry({ servedModel: "n", keyId: "key_other", endedAtMs: NOON + 10 });
    await store.ledger.insert([failed, fellBack]);
    const idsOf = async (filter: object) => (await ada.request.list({ filter })).requests.map(({ id }) => id);
    expect(await idsOf({ outcome: "failed" })).toEqual([failed.completionId]);
    expect(await idsOf({ outcome: "upstream_timeout", model: "m" })).toEqual([failed.completionId]);
    expect(await idsOf({ model: "n" })).toEqual([fellBack.completionId]);
    expect(await idsOf({ model: "m" })).toEqual([fellBack.completionId, failed.completionId]);
    expect(await idsOf({ keyId: "key_other" })).toEqual([fellBack.completionId]);
    expect(await idsOf({ since: timestampFromMs(NOON + 1) })).toEqual([fellBack.completionId]);
    expect(await idsOf({ until: timestampFromMs(NOON + 10) })).toEqual([failed.completionId]);
  });

  it("has pages, of 100 at most", async () => {
    const entries = Array.from({ length: 150 }, (_, index) => entry({ endedAtMs: NOON - index }));
    await store.ledger.insert(entries);
    const first = await ada.request.list({ limit: 100 });
    const second = await ada.request.list({ limit: 100, pageToken: first.nextPageToken });
    const ids = [...first.requests, ...second.requests].map(({ id }) => id);
    expect(ids).toEqual(entries.map(({ completionId }) => completionId));
    expect(second.nextPageToken).toBe("");
    expect((await ada.request.list({})).requests).toHaveLength(50);
  });

  it.each([
    [{ limit: 101 }, "limit"],
    [{ pageToken: "x' OR 1=1" }, "page_token"],
    [{ filter: { keyId: "' OR 1=1 --" } }, "filter.key_id"],
    [{ filter: { accountId: "%" } }, "account_id"],
    [{ filter: { model: "a\0b" } }, "filter.model"],
    [{ filter: { model: "m".repeat(257) } }, "filter.model"],
    [{ filter: { outcome: "constructor" } }, "filter.outcome"],
    [{ filter: { since: { seconds: -1n, nanos: 0 } } }, "filter.since"],
  ])("cannot be asked for with %o", async (request, field) => {
    const error = await errorOf(ada.request.list(request));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe(field);
  });
});

describe("one request", () => {
  it("is found by the completion's ID or its own, by those who may see it", async () => {
    const kept = entry({ accountId: bob.id, requestId: "req_ofBob" });
    await store.ledger.insert([kept]);
    for (const id of [kept.completionId, "req_ofBob"]) {
      expect((await bob.request.get({ id })).request?.id).toBe(kept.completionId);
      expect((await ada.request.get({ id })).request?.id).toBe(kept.completionId);
    }
    const eve = await site.signedUp("eve");
    for (const id of ["req_ofBob", kept.completionId, "no"]) {
      const { code, rawMessage } = await errorOf(eve.request.get({ id }));
      expect([code, rawMessage]).toEqual([Code.InvalidArgument, "id: request not found."]);
    }
    for (const id of ["", "a\0b", "x".repeat(129)])
      expect((await errorOf(ada.request.get({ id }))).code).toBe(Code.InvalidArgument);
  });

  it("is found although it was refused, with its caller's error message", async () => {
    const record = refusal(bob.id, { requestId: "req_refused" });
    site.feed.record(record);
    for (const id of [record.completionId, "req_refused"]) {
      expect((await bob.request.get({ id })).request).toMatchObject({
        id: record.completionId,
        keyName: "ci",
        entrance: "grpc",
        requestedModel: "<b>nothing</b>",
        outcome: "model_not_found",
        message: "There is no model <b>nothing</b>.",
        refused: true,
      });
    }
    expect((await bob.request.list({})).requests).toEqual([]);
    const eve = await site.signedUp("eve");
    expect((await errorOf(eve.request.get({ id: record.completionId }))).code).toBe(Code.InvalidArgument);
  });

  it("is the latest of those with one request ID", async () => {
    const at = (endedAtMs: number) => ({ requestId: "again", accountId: bob.id, endedAtMs });
    site.feed.record(refusal(bob.id, at(NOON + 1)));
    const kept = entry(at(NOON + 2));
    await store.ledger.insert([kept]);
    expect((await bob.request.get({ id: "again" })).request?.id).toBe(kept.completionId);
    const later = refusal(bob.id, at(NOON + 3));
    site.feed.record(later);
    expect((await bob.request.get({ id: "again" })).request?.id).toBe(later.completionId);
  });

  it("is found by its completion's ID, whatever others call theirs", async () => {
    const kept = entry({ accountId: bob.id, endedAtMs: NOON });
    await store.ledger.insert([kept]);
    const refused = refusal(bob.id, { endedAtMs: NOON });
    site.feed.record(refused);
    for (const { completionId: requestId } of [kept, refused]) {
      site.feed.record(refusal(ada.id, { requestId, endedAtMs: NOON + 1 }));
      await store.ledger.insert([entry({ accountId: ada.id, requestId, endedAtMs: NOON + 1 })]);
    }
    for (const { completionId: id } of [kept, refused])
      expect((await ada.request.get({ id })).request).toMatchObject({ id, accountId: bob.id });
  });

  it("that failed has its message for as long as this process remembers it", async () => {
    const kept = entry({ accountId: bob.id, outcome: "upstream_timeout" });
    await store.ledger.insert([kept]);
    const failure = new Failure("upstream_timeout", "m did not answer in time.");
    const id = kept.completionId;
    site.feed.record(keptRecord(kept, failure));
    expect((await bob.request.get({ id })).request).toMatchObject({ message: failure.message, refused: false });
    for (let index = 0; index < 1_000; index += 1) {
      site.feed.record(keptRecord(entry({ accountId: ada.id }), failure));
    }
    expect((await bob.request.get({ id })).request).toMatchObject({ message: failure.message });
    for (let index = 0; index < 200; index += 1) {
      site.feed.record(keptRecord(entry({ accountId: bob.id }), failure));
    }
    expect((await bob.request.get({ id })).request).toMatchObject({ message: "", outcome: "upstream_timeout" });
  });

  it("that was refused is forgotten after 200 others of its account, and after none of another one", async () => {
    const record = refusal(bob.id);
    site.feed.record(record);
    for (let index = 0; index < 1_005; index += 1) site.feed.record(refusal(ada.id));
    for (let index = 0; index < 199; index += 1) site.feed.record(refusal(bob.id));
    await bob.request.get({ id: record.completionId });
    site.feed.record(refusal(bob.id));
    expect((await errorOf(bob.request.get({ id: record.completionId }))).code).toBe(Code.InvalidArgument);
  });

  it("that was refused is listed and found as a sample of any process, without a key for administrators only", async () => {
    const served = entry({ accountId: bob.id });
    await store.ledger.insert([served]);
    const refused = (changes: Partial<LedgerEntry>) => ({
      entry: entry({ servedModel: undefined, outcome: "rate_limited", ...changes }),
      message: "Slow down.",
    });
    const own = refused({ accountId: bob.id, requestId: "req_slow", endedAtMs: served.endedAtMs + 1 });
    const keyless = refused({ accountId: NO_CALLER, keyId: NO_CALLER, outcome: "unauthenticated", endedAtMs: NOON });
    await store.refusals.add([], [own, keyless]);
    const idsOf = async (browser: Browser, filter = {}) =>
      (await browser.request.list({ filter })).requests.map(({ id }) => id);
    const [ownId, keylessId] = [own.entry.completionId, keyless.entry.completionId];
    expect(await idsOf(bob)).toEqual([ownId, served.completionId]);
    expect(await idsOf(ada)).toEqual([ownId, served.completionId, keylessId]);
    expect(await idsOf(ada, { keyId: NO_CALLER })).toEqual([keylessId]);
    expect(await idsOf(ada, { outcome: "rate_limited" })).toEqual([ownId]);
    for (const id of [ownId, "req_slow"])
      expect((await bob.request.get({ id })).request).toMatchObject({
        id: ownId,
        message: "Slow down.",
        refused: true,
      });
    expect((await errorOf(bob.request.get({ id: keylessId }))).code).toBe(Code.InvalidArgument);
    expect((await ada.request.get({ id: keylessId })).request).toMatchObject({ accountId: NO_CALLER, refused: true });
  });
});
