import { expect, it } from "vitest";
import { OverloadFailure } from "../../src/admission/overload-failure.ts";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import { keepRefusals } from "../../src/gateway/refusals.ts";
import { type EndedRequest, RequestFeed } from "../../src/inbound/dashboard/request-feed.ts";
import type { Refusal } from "../../src/inbound/services.ts";
import type { RefusalCount, RefusedRequest } from "../../src/ledger/refusal-store.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { kept, refusal } from "../inbound/dashboard/ended-requests.ts";
import { entry } from "../store/contracts/entries.ts";
import { somebody } from "../support/core-ports.ts";
import { FakeClock } from "../support/fake-clock.ts";

function start() {
  const counts: RefusalCount[] = [];
  const samples: RefusedRequest[] = [];
  const feed = new RequestFeed();
  const shown: EndedRequest[] = [];
  feed.subscribe((ended) => void shown.push(ended));
  const keeping = keepRefusals({
    store: {
      add: async (added, sampled) => {
        counts.push(...added);
        samples.push(...sampled);
      },
    },
    feed,
    clock: new FakeClock(),
    find: (name) => (name === "latest" ? { id: "chat", providerName: "" } : undefined),
    log: {} as Logger,
  });
  const refuse = (code: FailureCode | Failure, changes: Partial<Refusal> = {}): void =>
    keeping.observer.refused({
      entrance: "http",
      requestId: "req_1",
      target: "/v1/chat/completions",
      failure: typeof code === "string" ? new Failure(code, "No.") : code,
      ...changes,
    });
  return { ...keeping, refuse, counts, samples, shown };
}

it("replaces API keys in models' names and messages", async () => {
  const { observer, close, samples, shown } = start();
  const key = `sk_parley_${"A".repeat(46)}`;
  const failure = new Failure("model_not_found", `The model ${key} does not exist.`);
  observer.record(refusal("acct_a", { requestedModel: `openai/${key}`, failure }));
  await close();
  const hidden = "sk_parley_[redacted]";
  const expected = { entry: { requestedModel: `openai/${hidden}` }, message: `The model ${hidden} does not exist.` };
  expect(samples).toMatchObject([expected]);
  expect(shown).toMatchObject([expected]);
});

it("keeps refused requests with their key, the configured model and the reason", async () => {
  const { observer, close, counts, samples, shown } = start();
  const record = refusal("acct_a", { requestedModel: "latest", outcome: "permission_denied" });
  observer.record(record);
  observer.record(refusal("acct_a", { requestedModel: "<b>made up</b>" }));
  observer.record(kept(entry()));
  await close();
  const caller = { accountId: "acct_a", keyId: record.principal.keyId, refused: 1 };
  expect(counts).toMatchObject([
    { ...caller, model: "chat", outcome: "permission_denied", atMs: record.endedAtMs },
    { ...caller, model: "unknown", outcome: "model_not_found" },
  ]);
  expect(samples).toMatchObject([
    { entry: { completionId: record.completionId, requestedModel: "latest" }, message: record.failure?.message },
    { entry: { requestedModel: "<b>made up</b>" } },
  ]);
  expect(shown.map(({ refused }) => refused)).toEqual([true, true, false]);
});

it("keeps those refused before they were read, without a key where none is known, and shows them under the same ID", async () => {
  const { refuse, close, counts, samples, shown } = start();
  refuse("invalid_request", { principal: { ...somebody, accountId: "acct_a", keyName: "ci" } });
  refuse("unauthenticated");
  refuse(OverloadFailure.because("queue"), { principal: somebody });
  await close();
  expect(counts.map(({ accountId, outcome }) => [accountId, outcome])).toEqual([
    ["acct_a", "invalid_request"],
    ["none", "unauthenticated"],
    [somebody.accountId, "overloaded"],
  ]);
  expect(shown).toHaveLength(1);
  expect(samples).toHaveLength(3);
  expect(samples[0]?.entry).toEqual(shown[0]?.entry);
});

it("does not count the dashboard's own calls, and addresses that do not exist", async () => {
  const { refuse, close, counts } = start();
  refuse("unauthenticated", { entrance: "console" });
  refuse("not_found");
  await close();
  expect(counts).toEqual([]);
});
