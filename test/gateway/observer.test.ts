import { expect, it } from "vitest";
import { OverloadFailure } from "../../src/admission/overload-failure.ts";
import { Failure, type FailureCode, type FailureOptions } from "../../src/core/failure.ts";
import { createObserver } from "../../src/gateway/observer.ts";
import type { Principal } from "../../src/core/principal.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics.ts";
import type { CompletionSample } from "../../src/telemetry/completion-metrics.ts";
import { kept, refusal } from "../inbound/dashboard/ended-requests.ts";
import { entry } from "../store/contracts/entries.ts";
import { attemptOf } from "../support/attempt.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { QUIET } from "../support/metrics.ts";

it("refusals without a key, and those of one key, take at most 100 lines of the log in a second, and the next second has the count", () => {
  const clock = new FakeClock();
  const lines: object[] = [];
  const add = (fields: object, msg: string): void => void lines.push({ ...fields, msg });
  const log = { line: (_: string, fields: object, msg: string) => add(fields, msg), info: add } as unknown as Logger;
  const metrics = { refusal: () => undefined, unavailable: () => undefined } as unknown as Metrics;
  const observer = createObserver({ log, metrics, clock, find: () => undefined });
  const refuse = (code: FailureCode, options: FailureOptions = {}, caller: { principal?: Principal } = {}): void =>
    observer.refused({
      entrance: "http",
      requestId: "req_1",
      target: "/x",
      failure: new Failure(code, "No.", options),
      ...caller,
    });
  for (let count = 0; count < 50; count++) {
    refuse("unauthenticated");
    refuse("not_found");
    refuse("overloaded", { unavailable: "token_issuer" });
    refuse("invalid_request");
    refuse("permission_denied");
    refuse("rate_limited");
  }
  expect(lines).toHaveLength(100);
  const { principal } = refusal("acct_1");
  for (let count = 0; count < 150; count++) refuse("rate_limited", {}, { principal });
  expect(lines).toHaveLength(200);
  refuse("rate_limited", {}, { principal: { ...principal, keyFamilyId: "key_other" } });
  expect(lines.at(-1)).toMatchObject({ outcome: "rate_limited" });
  refuse("internal");
  expect(lines.at(-1)).toMatchObject({ outcome: "internal" });
  clock.advance(1000);
  refuse("unauthenticated");
  refuse("rate_limited", {}, { principal });
  expect(lines.slice(202)).toMatchObject([
    { lines: 200, msg: "refusals without a key were not logged" },
    { outcome: "unauthenticated" },
    { lines: 50, key_id: principal.keyId, msg: "refusals of a key were not logged" },
    { outcome: "rate_limited" },
  ]);
});

it("gives metrics configured names only, the provider of each target, and its own time to the first content", () => {
  const samples: CompletionSample[] = [];
  const metrics = { completion: (of: CompletionSample) => void samples.push(of) } as unknown as Metrics;
  const lines: object[] = [];
  const log = { line: () => undefined, warn: (fields: object) => void lines.push(fields) } as unknown as Logger;
  const models = new Map([
    ["chat", { id: "chat", providerName: "" }],
    ["latest", { id: "chat", providerName: "" }],
    ["east", { id: "east", providerName: "one" }],
  ]);
  const observer = createObserver({ log, metrics, clock: new FakeClock(), find: (name) => models.get(name) });
  const attempts = [
    attemptOf({ model: "gone", outcome: "upstream_timeout", durationMs: 400 }),
    attemptOf({ model: "east", startMs: 450, durationMs: 300 }),
  ];
  const stream = { streamed: true, firstContentMs: 600, durationMs: 750, attempts, reservedMicroUsd: 3 };
  observer.record({ ...kept({ ...entry(), costMicroUsd: 5, estimated: true }), ...stream, requestedModel: "latest" });
  observer.record(refusal("acct_1", { requestedModel: "any text of a caller", attempts: [] }));
  expect(samples).toMatchObject([
    {
      model: "chat",
      firstContentMs: 600,
      costMicroUsd: 5,
      isEstimated: true,
      isOverReserved: true,
      attempts: [
        { target: "gone", provider: "unknown", firstContentMs: undefined },
        { target: "east", provider: "one", firstContentMs: 150 },
      ],
    },
    { model: "unknown", isEstimated: false, isOverReserved: false, attempts: [] },
  ]);
  expect(lines).toMatchObject([{ cost_micro_usd: 5, reserved_micro_usd: 3 }]);
});

it.each([
  [new Failure("overloaded", "Budgets cannot be checked.", { unavailable: "database" }), "database"],
  [new Failure("overloaded", "Later."), "unknown"],
  [OverloadFailure.because("queue"), "load"],
])("a 503 of this service is counted by what was unavailable", async (failure, what) => {
  const metrics = createMetrics(QUIET);
  const lines: object[] = [];
  const log = { line: (_: string, fields: object) => void lines.push(fields) } as unknown as Logger;
  const observer = createObserver({ log, metrics, clock: new FakeClock(), find: () => undefined });
  observer.refused({ entrance: "http", requestId: "req_1", target: "/x", failure });
  const other = new Failure("rate_limited", "Slower.");
  observer.refused({ entrance: "http", requestId: "req_2", target: "/x", failure: other });
  const counted = (await metrics.text()).split("\n").filter((line) => line.startsWith("parley_unavailable_total"));
  expect(counted).toEqual([`parley_unavailable_total{what="${what}"} 1`]);
  // Overload has no lines of its own.
  const logged = failure instanceof OverloadFailure ? [] : [{ unavailable: what }];
  expect(lines).toMatchObject([...logged, { outcome: "rate_limited" }]);
});
