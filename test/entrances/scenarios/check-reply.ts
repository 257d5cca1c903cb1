import { expect } from "vitest";
import { LOOKS } from "./failures.ts";
import type { Reply, SeenFailure } from "./reply.ts";
import type { Run } from "./run.ts";
import type { ExpectedAnswer, ExpectedFailure } from "./scenario.ts";

/** What no caller may read: where the upstreams are, and what the gateway shows them. */
const SECRETS = /127\.0\.0\.1|localhost|secret-of-the-gateway|ECONN|UND_ERR/i;

/** Checks what the caller has seen, word for word where words were promised. */
export function checkReply(run: Run, reply: Reply): void {
  const { then } = run.scenario;
  if ("answer" in then) checkAnswer(run, reply, then);
  else checkFailure(run, reply, then);
}

function checkAnswer(run: Run, reply: Reply, { answer, ...then }: ExpectedAnswer): void {
  const { model = "alpha", text = "Hello.", finishReasons = ["stop"], pictures = [] } = answer;
  const { omitted = [], clamped = [] } = answer;
  const attempts = then.attempts ?? [`${model} served 200`];
  expect(reply.failure).toBeUndefined();
  expect({ ...reply, facts: {} }).toEqual({
    model,
    text,
    pictures,
    finishReasons,
    usage: "usage" in answer ? answer.usage : "7+3",
    report: { attempts, omitted, clamped },
    facts: {},
    complete: true,
    failure: undefined,
  });
  checkRoutingFacts(run, reply, attempts);
  expect(reply.facts["parley-served-model"]).toBe(model);
}

function checkFailure(run: Run, reply: Reply, then: ExpectedFailure): void {
  const { after = "", attempts = [], byLibrary } = then;
  expect(reply.failure).toBeDefined();
  expect(reply.text).toBe(after);
  expect(reply.complete).toBe(false);
  if (byLibrary === true) return expect(reply.failure!.status).toBe(`${look(then).grpc} without details`);
  if (run.entrance === "grpc" && then.failure === "deadline_exceeded") {
    // Both sides keep the deadline; whose word arrives first depends on microseconds.
    return expect(reply.failure!.status).toMatch(/^DEADLINE_EXCEEDED /);
  }
  if (run.entrance === "http") checkHttpFailure(reply, then);
  else checkGrpcFailure(reply.failure!, then);
  expect(reply.failure).toMatchObject({ attempts, param: then.param ?? null });
  expect(reply.failure!.message).toMatch(then.message ?? /^[^\n]{5,600}$/);
  expect(reply.failure!.message).not.toMatch(SECRETS);
  if (after !== "" || (run.entrance === "http" && then.refused !== true)) checkRoutingFacts(run, reply, attempts);
  expect(reply.facts["x-request-id"]).toBe(run.requestId);
}

function checkHttpFailure({ failure }: Reply, then: ExpectedFailure): void {
  const { http, code, waits, final } = look(then);
  const begun = then.after !== undefined;
  expect(failure).toMatchObject({
    status: begun ? http.replace(/^\d+/, "200") : http,
    code: then.detail ?? code,
    final: begun ? undefined : final === true || countTriedModels(then) > 1,
  });
  checkWait(failure!, then, waits === true && !begun);
}

function checkGrpcFailure(failure: SeenFailure, then: ExpectedFailure): void {
  const { grpc, code, waits } = look(then);
  expect(failure).toMatchObject({
    status: `${grpc} ${then.failure.toUpperCase()}`,
    code: then.detail ?? (code === "absent" ? null : code),
  });
  checkWait(failure, then, waits === true);
}

function checkWait({ retryAfterS }: SeenFailure, then: ExpectedFailure, expected: boolean): void {
  if (!expected) return expect(retryAfterS).toBeUndefined();
  expect(retryAfterS).toBeGreaterThanOrEqual(then.retryAfterS ?? 1);
  expect(retryAfterS).toBeLessThanOrEqual(then.retryAfterS ?? 60);
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
  if (run.entrance === "http" && run.mode === "stream") {
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

function look({ failure }: ExpectedFailure): (typeof LOOKS)[keyof typeof LOOKS] {
  if (failure === "cancelled") throw new RangeError("nobody sees a cancelled call");
  return LOOKS[failure];
}
