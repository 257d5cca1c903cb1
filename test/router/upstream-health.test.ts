import { beforeEach, describe, expect, it } from "vitest";
import type { CompletionRecord } from "../../src/core/ledger.ts";
import { type Model, upstreamKey } from "../../src/core/model.ts";
import { createHealthRecorder, type HealthRecorder } from "../../src/router/upstream-health.ts";
import { somebody } from "../support/core-ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import type { Attempt } from "../../src/core/attempt.ts";
import { attemptOf } from "../support/attempt.ts";

const MINUTE_MS = 60_000;

let clock: FakeClock;
let health: HealthRecorder;
let model: Model;
let twin: Model;
let noted: unknown[];

beforeEach(() => {
  clock = new FakeClock();
  const provider = new ScriptedProvider(clock, {});
  model = modelOf("words", provider);
  // Another ID with the same upstream model.
  twin = { ...model, id: "words-latest" };
  const models = [model, twin];
  noted = [];
  const find = (id: string) => models.find((each) => each.id === id);
  health = createHealthRecorder({ find }, clock, (upstream, outcome, times) => noted.push([upstream, outcome, times]));
});

const attempt = (outcome: Attempt["outcome"], facts: Partial<Attempt> = {}): Attempt =>
  attemptOf({ model: "words", outcome, durationMs: 10, ...facts });

function record(attempts: readonly Attempt[], facts: Partial<CompletionRecord> = {}): void {
  health.record({
    requestId: "req_1",
    completionId: "chatcmpl-1",
    principal: somebody,
    entrance: "http",
    requestedModel: "words",
    servedModel: "words",
    streamed: true,
    outcome: "served",
    attempts,
    startedAtMs: 0,
    endedAtMs: 0,
    limits: undefined,
    entry: undefined,
    usage: undefined,
    costMicroUsd: undefined,
    durationMs: 20,
    firstContentMs: undefined,
    failure: undefined,
    ...facts,
  });
}

describe("the health of an upstream model", () => {
  it("is empty before the first call", () => {
    const { attempts, failures, firstContent, duration, lastFailures } = health.of(model);
    expect({ attempts, failures, firstContent, duration, lastFailures }).toEqual({
      attempts: 0,
      failures: 0,
      firstContent: undefined,
      duration: undefined,
      lastFailures: [],
    });
  });

  it("counts attempts by outcome, for all IDs of the model", () => {
    record([attempt("upstream_timeout"), attempt("served")]);
    record([attempt("served", { model: "words-latest" })]);
    record([attempt("skipped")]);
    record([attempt("served", { model: "gone" })]);
    expect(health.of(model)).toMatchObject({ attempts: 3, failures: 1 });
    expect(health.of(twin)).toEqual(health.of(model));
    expect(Object.fromEntries(health.of(model).outcomes)).toEqual({ upstream_timeout: 1, served: 2, skipped: 1 });
  });

  it.each<[Attempt["outcome"], number]>([
    ["upstream_unavailable", 1],
    ["upstream_rate_limited", 1],
    ["upstream_refused_us", 1],
    ["internal", 1],
    ["upstream_rejected", 0],
    ["invalid_request", 0],
    ["cancelled", 0],
    ["deadline_exceeded", 0],
    ["unauthenticated", 0],
    ["permission_denied", 0],
  ])("counts %s as %i failures of the model", (outcome, failures) => {
    record([attempt(outcome)]);
    expect(health.of(model)).toMatchObject({ attempts: 1, failures });
  });

  it("has percentiles of time to first content and of whole answers", () => {
    for (let ms = 1; ms <= 100; ms += 1) {
      record([attempt("served", { durationMs: ms * 10 })], { firstContentMs: ms });
      // The oldest beyond the 64 of a minute are removed.
      if (ms % 50 === 0) clock.advance(MINUTE_MS);
    }
    expect(health.of(model).firstContent).toEqual({ count: 100, p50Ms: 50, p95Ms: 95 });
    expect(health.of(model).duration).toEqual({ count: 100, p50Ms: 500, p95Ms: 950 });
  });

  it("does not include the time of other attempts", () => {
    record([attempt("upstream_timeout", { durationMs: 60_000 }), attempt("served")], { firstContentMs: 60_010 });
    expect(health.of(model).firstContent).toBeUndefined();
    expect(health.of(model).duration).toEqual({ count: 1, p50Ms: 10, p95Ms: 10 });
  });

  it("is noted with each attempt that is counted", () => {
    record([attempt("served", { durationMs: 90 })], { firstContentMs: 30 });
    record([attempt("upstream_timeout", { durationMs: 60_000 }), attempt("served")], { firstContentMs: 60_010 });
    const upstream = upstreamKey(model);
    expect(noted).toEqual([
      [upstream, "served", { firstContentMs: 30, durationMs: 90 }],
      [upstream, "upstream_timeout", { firstContentMs: undefined, durationMs: undefined }],
      [upstream, "served", { firstContentMs: undefined, durationMs: 10 }],
    ]);
  });

  it("keeps the latest 64 durations of a minute, and counts all", () => {
    for (let ms = 1; ms <= 1_000; ms += 1) record([attempt("served")], { firstContentMs: ms });
    expect(health.of(model).firstContent).toEqual({ count: 1_000, p50Ms: 968, p95Ms: 997 });
  });

  it("has the latest 20 failures, newest first, with the IDs of their requests", () => {
    for (let index = 0; index < 25; index += 1) {
      clock.advance(10);
      const failed = attempt("upstream_unavailable", { reason: `reason ${index}`, upstreamStatus: 503 });
      record([failed], { requestId: `req_${index}`, completionId: `chatcmpl-${index}` });
    }
    record([attempt("served"), attempt("cancelled"), attempt("skipped"), attempt("unauthenticated")]);
    const { lastFailures } = health.of(model);
    expect(lastFailures).toHaveLength(20);
    expect(lastFailures[0]).toEqual({
      atMs: clock.now(),
      outcome: "upstream_unavailable",
      upstreamStatus: 503,
      reason: "reason 24",
      requestId: "req_24",
      completionId: "chatcmpl-24",
    });
    expect(lastFailures.at(-1)?.requestId).toBe("req_5");
  });

  it("truncates long messages", () => {
    record([attempt("upstream_protocol", { reason: "🦜".repeat(5_000) })]);
    const [failure] = health.of(model).lastFailures;
    expect(failure!.reason.length).toBeLessThanOrEqual(300);
    expect(failure!.reason.isWellFormed()).toBe(true);
  });

  it("removes data older than 15 minutes", () => {
    const startedMs = clock.now();
    record([attempt("upstream_unavailable")], { firstContentMs: 5 });
    clock.advance(13 * MINUTE_MS);
    record([attempt("served")]);
    expect(health.of(model)).toMatchObject({ attempts: 2, failures: 1 });
    expect(health.sinceMs()).toBe(startedMs);
    clock.advance(3 * MINUTE_MS);
    expect(health.of(model)).toMatchObject({ attempts: 1, failures: 0, firstContent: undefined, lastFailures: [] });
    expect(health.sinceMs()).toBeGreaterThan(clock.now() - 15 * MINUTE_MS);
  });
});
