import { Code, ConnectError } from "@connectrpc/connect";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { LoggedRequest, WatchRequestsResponse } from "../../../gen/parley/console/v1/request_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { LedgerEntry } from "../../../src/core/ledger.ts";
import { entry as makeEntry } from "../../store/contracts/entries.ts";
import { kept, refusal } from "./ended-requests.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
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

/** An entry of one that ends now. */
function entry(changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return makeEntry({ endedAtMs: site.access.clock.now(), accountId: bob.id, ...changes });
}

/** What somebody who watches has been sent, and how it ended. */
interface Watching {
  readonly responses: WatchRequestsResponse[];
  readonly requests: LoggedRequest[];
  readonly end: Promise<ConnectError | undefined>;
  leave(): void;
}

/** Begins to watch; resolves when the server looks. */
async function watch(browser: Browser = bob, filter: object = {}): Promise<Watching> {
  const controller = new AbortController();
  const responses: WatchRequestsResponse[] = [];
  const requests: LoggedRequest[] = [];
  const read = async (): Promise<ConnectError | undefined> => {
    try {
      for await (const response of browser.request.watch({ filter }, { signal: controller.signal })) {
        responses.push(response);
        requests.push(...response.requests);
      }
      return undefined;
    } catch (reason) {
      return ConnectError.from(reason);
    }
  };
  let isOver = false;
  const end = read().finally(() => (isOver = true));
  await expect.poll(() => isOver || responses.length > 0).toBe(true);
  return { responses, requests, end, leave: () => controller.abort() };
}

/** The IDs of all that has been sent when this one has, as time goes by. */
async function idsUpTo({ requests }: Watching, last: string): Promise<string[]> {
  await expect
    .poll(() => {
      site.access.clock.advance(100);
      return requests.at(-1)?.id;
    })
    .toBe(last);
  return requests.map(({ id }) => id);
}

/** How it ends, as time goes by. */
async function endOf({ end }: Watching): Promise<Code | undefined> {
  let isOver = false;
  const code = end.then((error) => error?.code).finally(() => (isOver = true));
  await expect
    .poll(() => {
      site.access.clock.advance(20_000);
      return isOver;
    })
    .toBe(true);
  return code;
}

describe("watching requests", () => {
  it("asks the database for one stream at a time, however many there are", async () => {
    let [asking, most] = [0, 0];
    const list = store.ledger.list.bind(store.ledger);
    vi.spyOn(store.ledger, "list").mockImplementation(async (query) => {
      most = Math.max(most, ++asking);
      return list(query).finally(() => (asking -= 1));
    });
    const watching = await Promise.all([ada, bob, ada, bob, ada, bob].map((browser) => watch(browser)));
    expect(most).toBe(1);
    await store.ledger.insert([entry({ completionId: "later" })]);
    for (const each of watching) expect(await idsUpTo(each, "later")).toEqual(["later"]);
    expect(most).toBe(1);
  });

  it("begins with nothing, and has what this process answers and refuses", async () => {
    const watching = await watch();
    expect(watching.responses).toMatchObject([{ requests: [], skipped: 0n }]);
    const [served, failed, refused] = [entry(), entry({ outcome: "upstream_timeout" }), refusal(bob.id)];
    for (const record of [kept(served), kept(failed, new Failure("upstream_timeout", "Too late.")), refused])
      site.feed.record(record);
    expect(await idsUpTo(watching, refused.completionId)).toEqual([
      served.completionId,
      failed.completionId,
      refused.completionId,
    ]);
    expect(watching.requests).toMatchObject([
      { outcome: "served", message: "", refused: false, keyName: "ci", promptTokens: 10n },
      { outcome: "upstream_timeout", message: "Too late.", refused: false },
      { outcome: "model_not_found", message: "There is no model <b>nothing</b>.", refused: true },
    ]);
  });

  it("begins with what this process has refused before, of whom and what is asked for", async () => {
    const [theirs, own] = [refusal(ada.id), refusal(bob.id)];
    for (const record of [theirs, own]) site.feed.record(record);
    const [member, administrator] = [await watch(bob), await watch(ada)];
    expect(member.requests).toMatchObject([{ id: own.completionId, refused: true }]);
    expect(administrator.requests.map(({ id }) => id)).toEqual([theirs.completionId, own.completionId]);
    expect((await watch(bob, { outcome: "rate_limited" })).requests).toEqual([]);
  });

  it("has samples of what other processes have refused", async () => {
    const watching = await watch();
    const refused = { entry: entry({ servedModel: undefined, outcome: "rate_limited" }), message: "Slow down." };
    await store.refusals.add([], [{ ...refused, entry: { ...refused.entry, endedAtMs: site.access.clock.now() } }]);
    await idsUpTo(watching, refused.entry.completionId);
    expect(watching.requests).toMatchObject([{ outcome: "rate_limited", message: "Slow down.", refused: true }]);
  });

  it("has what other processes have written, and nothing twice", async () => {
    const { key } = await bob.key.create({ name: "elsewhere" });
    const before = entry();
    await store.ledger.insert([before]);
    const watching = await watch();
    const own = entry();
    site.feed.record(kept(own));
    const other = entry({ keyId: key!.id });
    await store.ledger.insert([own, other]);
    expect(await idsUpTo(watching, other.completionId)).toEqual([own.completionId, other.completionId]);
    expect(watching.requests[1]).toMatchObject({ keyName: "elsewhere", outcome: "served" });
    const later = entry();
    await store.ledger.insert([later]);
    expect(await idsUpTo(watching, later.completionId)).toEqual([
      own.completionId,
      other.completionId,
      later.completionId,
    ]);
  });

  it("continues with this process's own while the ledger is unavailable", async () => {
    const watching = await watch();
    vi.spyOn(store.ledger, "list").mockRejectedValue(new Error("the database is unavailable"));
    for (let second = 0; second < 5; second += 1) site.access.clock.advance(1_000);
    const own = entry();
    site.feed.record(kept(own));
    expect(await idsUpTo(watching, own.completionId)).toEqual([own.completionId]);
  });

  it("shows members their own account's only", async () => {
    const [member, administrator] = [await watch(bob), await watch(ada)];
    const [theirs, own, refused] = [entry({ accountId: ada.id }), entry(), refusal(ada.id)];
    site.feed.record(refused);
    await store.ledger.insert([theirs, own]);
    expect(await idsUpTo(administrator, own.completionId)).toEqual([
      refused.completionId,
      theirs.completionId,
      own.completionId,
    ]);
    expect(await idsUpTo(member, own.completionId)).toEqual([own.completionId]);
    const error = await (await watch(bob, { accountId: ada.id })).end;
    expect(error?.code).toBe(Code.PermissionDenied);
  });

  it("shows what the filter asks for", async () => {
    const watching = await watch(ada, { model: "n", outcome: "failed", keyId: "key_1" });
    const wanted = { keyId: "key_1", requestedModel: "n", outcome: "upstream_timeout" } as const;
    const [own, other] = [entry(wanted), entry(wanted)];
    const others = [{ keyId: "key_2" }, { requestedModel: "m" }, { outcome: "served" }] as const;
    for (const changes of others) site.feed.record(kept(entry({ ...wanted, ...changes })));
    site.feed.record(kept(own));
    await store.ledger.insert([...others.map((changes) => entry({ ...wanted, ...changes })), other]);
    expect(await idsUpTo(watching, other.completionId)).toEqual([own.completionId, other.completionId]);
    for (const filter of [{ since: timestampFromMs(1) }, { until: timestampFromMs(1) }, { outcome: "x" }]) {
      expect((await (await watch(ada, filter)).end)?.code).toBe(Code.InvalidArgument);
    }
  });

  it("leaves out the oldest of too many, and says how many", async () => {
    const watching = await watch();
    const entries = Array.from({ length: 500 }, () => entry());
    for (const each of entries) site.feed.record(kept(each));
    const latest = entries.slice(300).map(({ completionId }) => completionId);
    expect(await idsUpTo(watching, latest.at(-1)!)).toEqual(latest);
    expect(watching.responses.map(({ skipped }) => Number(skipped))).toEqual([0, 300, 0]);
  });

  it("has a heartbeat within fifteen seconds", async () => {
    const watching = await watch();
    await expect.poll(() => site.access.clock.pending).toBeGreaterThan(2);
    site.access.clock.advance(15_000);
    await expect.poll(() => watching.responses.length).toBe(2);
    expect(watching.responses[1]).toMatchObject({ requests: [], skipped: 0n });
  });

  it("holds nothing after its reader has left", async () => {
    const watching = await watch();
    watching.leave();
    expect((await watching.end)?.code).toBe(Code.Canceled);
    await expect.poll(() => site.access.clock.pending).toBe(0);
  });
});

describe("the end of watching", () => {
  it("comes with that of the session", async () => {
    const watching = await watch();
    await bob.session.signOut({});
    expect(await endOf(watching)).toBe(Code.Unauthenticated);
  });

  it("comes when the account is disabled", async () => {
    const watching = await watch();
    await ada.account.update({ id: bob.id, disabled: true });
    expect(await endOf(watching)).toBe(Code.Unauthenticated);
  });

  it("comes when the process shuts down, at once", async () => {
    const watching = await watch();
    const drained = site.server.drain();
    expect((await watching.end)?.code).toBe(Code.Unavailable);
    await drained;
  });

  it("comes after an hour", async () => {
    const watching = await watch();
    expect(await endOf(watching)).toBe(undefined);
    expect(watching.responses.length).toBeGreaterThan(10);
  });

  it("comes at once for the ninth of an account", async () => {
    const open = await Promise.all(Array.from({ length: 8 }, () => watch()));
    expect((await (await watch()).end)?.code).toBe(Code.ResourceExhausted);
    expect((await watch(ada)).responses).toHaveLength(1);
    open[0]!.leave();
    await open[0]!.end;
    await expect.poll(async () => (await watch()).responses.length).toBe(1);
  });
});
