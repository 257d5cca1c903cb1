import { ErrorReason } from "../../../gen/parley/v1/error_pb.js";
import { reasonOf } from "../../../src/core/error-reason.ts";
import { expect } from "vitest";
import type { Caller } from "./callers/caller.ts";
import { LOOKS } from "./failures.ts";
import type { Reply, SeenFailure } from "./reply.ts";
import { type Run, serviceOf } from "./run.ts";
import type { ExpectedAnswer, ExpectedFailure } from "./scenario.ts";

/** Texts that no response may contain: upstream addresses and credentials. */
const SECRETS = /127\.0\.0\.1|localhost|secret-of-the-gateway|ECONN|UND_ERR/i;

/** Checks the caller's reply, including documented messages. */
export function checkReply(run: Run, reply: Reply): void {
  const { expected } = run.scenario;
  if ("answer" in expected) checkAnswer(run, reply, expected);
  else checkFailure(run, reply, expected);
}

function checkAnswer(run: Run, reply: Reply, { answer, ...expected }: ExpectedAnswer): void {
  const usual = USUAL[serviceOf(run.way)];
  const { model = "alpha", text = "Hello.", finishReasons = usual.finishReasons, calls = [], pictures = [] } = answer;
  const { omitted = [], clamped = [] } = answer;
  const attempts = expected.attempts ?? [`${model} served 200`];
  expect(reply.failure).toBeUndefined();
  expect({ ...reply, facts: {} }).toEqual({
    model,
    text: run.way.entrance === "http" && run.way.caller.hasText === false ? "" : text,
    calls,
    pictures,
    finishReasons,
    usage: "usage" in answer ? answer.usage : usual.usage,
    report: {
      attempts,
      omitted: omitted.map((field) => fieldName(run, field)),
      clamped: clamped.map((clamp) => clamp.replace(/^\S+/, (field) => fieldName(run, field))),
    },
    facts: {},
    complete: true,
    failure: undefined,
  });
  checkRoutingFacts(run, reply, attempts);
  expect(reply.facts["parley-served-model"]).toBe(model);
}

/** What answers have unless a scenario says otherwise. */
const USUAL = {
  completions: { finishReasons: ["stop"], usage: "7+3" },
  embeddings: { finishReasons: [], usage: "7+0" },
} as const;

/** The caller's name of a field of the contract. */
function fieldName({ way }: Run, field: string): string {
  return way.entrance === "grpc" ? field : way.caller.nameOf(field);
}

function checkFailure(run: Run, reply: Reply, expected: ExpectedFailure): void {
  const { way } = run;
  const { after = "", attempts = [], byLibrary } = expected;
  expect(reply.failure).toBeDefined();
  expect(reply.text).toBe(after);
  expect(reply.complete).toBe(false);
  if (byLibrary === true) return expect(reply.failure!.status).toBe(`${lookOf(expected).grpc} without details`);
  if (expected.failure === "deadline_exceeded") {
    // Client and gateway both enforce the deadline; either may be first.
    if (way.entrance === "grpc") return expect(reply.failure!.status).toMatch(/^DEADLINE_EXCEEDED /);
    if (way.through === "front") return expect(reply.failure).toMatchObject(way.caller.look(expected));
  }
  if (way.entrance === "http") checkHttpFailure(way.caller, reply.failure!, expected);
  else checkGrpcFailure(reply.failure!, expected);
  expect(reply.failure).toMatchObject({ attempts });
  checkParam(run, reply.failure!, expected);
  expect(reply.failure!.message).toMatch(expected.message ?? /^[^\n]{5,600}$/);
  expect(reply.failure!.message).not.toMatch(SECRETS);
  if (after !== "" || (way.entrance === "http" && expected.refused !== true)) checkRoutingFacts(run, reply, attempts);
  expect(reply.facts["x-request-id"]).toBe(run.requestId);
}

function checkParam(run: Run, { param, message }: SeenFailure, expected: ExpectedFailure): void {
  const { way } = run;
  const field = expected.ownParam ?? (expected.param === undefined ? null : fieldName(run, expected.param));
  if (way.entrance === "grpc" || way.caller.hasParam) return expect(param).toBe(field);
  expect(param).toBeNull();
  // Messages about models and conversations do not begin with their field.
  if (field !== null && expected.failure === "invalid_request" && expected.message === undefined)
    expect(message.startsWith(`${field}: `), message).toBe(true);
}

function checkHttpFailure(caller: Caller, failure: SeenFailure, expected: ExpectedFailure): void {
  const { waits, final } = lookOf(expected);
  const begun = expected.after !== undefined;
  expect(failure).toMatchObject({
    ...caller.look(expected),
    final: begun ? undefined : final === true || countTriedModels(expected) > 1,
  });
  checkWait(failure, expected, waits === true && !begun);
}

function checkGrpcFailure(failure: SeenFailure, expected: ExpectedFailure): void {
  const { grpc, code, waits, final } = lookOf(expected);
  expect(failure).toMatchObject({
    status: `${grpc} ${ErrorReason[reasonOf({ code: expected.failure, detail: expected.detail })]}`,
    code: expected.detail ?? (code === "absent" ? null : code),
    final: final === true || waits !== true || countTriedModels(expected) > 1,
  });
  checkWait(failure, expected, waits === true);
  const { retryAfterS } = failure;
  expect(failure.pushbackMs).toBe(failure.final === true ? -1 : Math.ceil(retryAfterS! * 1000));
}

function checkWait({ retryAfterS }: SeenFailure, expected: ExpectedFailure, waits: boolean): void {
  if (!waits) return expect(retryAfterS).toBeUndefined();
  // HTTP rounds up to whole seconds, gRPC has milliseconds.
  const seconds = Math.ceil(retryAfterS ?? 0);
  expect(seconds).toBeGreaterThanOrEqual(expected.retryAfterS ?? 1);
  expect(seconds).toBeLessThanOrEqual(expected.retryAfterS ?? 60);
}

function checkRoutingFacts(run: Run, { facts, model }: Reply, attempts: readonly string[]): void {
  const tried = attempts.filter((attempt) => !attempt.includes(" skipped"));
  expect(facts).toMatchObject({
    "x-request-id": run.requestId,
    "parley-requested-model": run.scenario.ask?.model ?? "alpha",
    "parley-attempts": String(tried.length),
  });
  if (model === undefined) return;
  expect(Number(facts["parley-overhead-ms"])).toBeGreaterThanOrEqual(0);
  if (run.way.entrance === "http" && run.mode === "stream") {
    expect(facts).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
  }
}

function countTriedModels({ attempts = [] }: ExpectedFailure): number {
  return new Set(attempts.filter((each) => !each.includes(" skipped")).map((each) => each.split(" ")[0])).size;
}

function lookOf({ failure }: ExpectedFailure): (typeof LOOKS)[keyof typeof LOOKS] {
  if (failure === "cancelled") throw new RangeError("no caller sees a cancelled call");
  return LOOKS[failure];
}
