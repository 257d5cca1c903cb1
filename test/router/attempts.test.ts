import { getEventListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import { omission } from "../../src/core/provider-options.ts";
import { TimeLimit } from "../../src/router/time-limit.ts";
import { batchesOf } from "../support/batches.ts";
import { FakeClock } from "../support/fake-clock.ts";
import {
  collect,
  createWorld,
  fails,
  hangs,
  newCall,
  NO_RULES,
  outcomes,
  said,
  serves,
  stream,
  whole,
} from "./routed.ts";
import { toDuration } from "../../src/core/attempt.ts";

const failure = (code: FailureCode, message = `It is ${code}.`): Failure => new Failure(code, message);
const unsupported = (field: string) => omission(field, OmissionReason.UNSUPPORTED);
const unavailable = new Failure("upstream_unavailable", "It is down.", { upstreamStatus: 503 });
const rejected = new Failure("upstream_rejected", "No.", { upstreamStatus: 400 });

describe("one model", () => {
  it("is called once when it succeeds", async () => {
    const world = createWorld({ scripts: { a: [serves("hi", "there")] } });
    const call = newCall();
    const { batches } = await stream(world, call);
    expect(said(batches)).toBe("start hi there choiceFinish report");
    expect(outcomes(call.attempts)).toEqual(["a:served"]);
    expect(call.attempts[0]).toMatchObject({ upstreamStatus: 200, reason: "" });
  });

  it("is retried once, after a random backoff, when the failure is temporary", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable), serves("hi")] } });
    const call = newCall();
    const beganMs = world.clock.monotonic();
    const { batches } = await stream(world, call);
    expect(said(batches)).toBe("start hi choiceFinish report");
    expect(outcomes(call.attempts)).toEqual(["a:upstream_unavailable", "a:served"]);
    expect(call.attempts[0]).toMatchObject({ upstreamStatus: 503, reason: "It is down." });
    expect(world.clock.monotonic() - beganMs).toBe(50);
  });

  it("is not called a third time", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable)] } });
    const { failure: shown } = await stream(world);
    expect(world.provider.calls).toHaveLength(2);
    expect(shown).toMatchObject({ code: "upstream_unavailable", message: "It is down.", upstreamStatus: 503 });
    expect(outcomes(shown!.attempts)).toEqual(["a:upstream_unavailable", "a:upstream_unavailable"]);
  });

  it.each([400, 403, 404])(
    "keeps its breaker closed when it refuses content that requests only name: %d",
    async (status) => {
      const refused = new Failure("upstream_unavailable", "No.", {
        upstreamStatus: status,
        refused: true,
        transient: false,
      });
      const world = createWorld({ scripts: { a: [fails(refused)] }, breaker: { failures: 1 } });
      const file = { kind: { case: "file" as const, value: { source: { case: "id" as const, value: "file_1" } } } };
      const naming = create(CompletionRequestSchema, { model: "a", messages: [{ role: Role.USER, parts: [file] }] });
      const plan = world.router.plan(naming, world.models, { mode: "whole", rules: NO_RULES });
      for (let time = 0; time < 2; time++) await expect(plan.create(newCall())).rejects.toThrow("No.");
      const isOpen = (): boolean => world.router.openingOf(world.models[0]!) !== undefined;
      expect(isOpen()).toBe(false);
      await whole(world);
      expect(isOpen()).toBe(true);
    },
  );

  it("is retried no sooner than its retry-after", async () => {
    const busy = new Failure("upstream_unavailable", "Busy.", { retryAfterMs: 1_500 });
    const world = createWorld({ scripts: { a: [fails(busy), serves("hi")] }, random: () => 0 });
    const beganMs = world.clock.monotonic();
    await stream(world);
    expect(world.clock.monotonic() - beganMs).toBe(1_500);
  });

  it("is retried after the retry-after of a rate limit, if that is short", async () => {
    const limited = new Failure("upstream_rate_limited", "Slow down.", { retryAfterMs: 1_000 });
    const world = createWorld({ scripts: { a: [fails(limited), serves("hi")] }, random: () => 0 });
    const call = newCall();
    const beganMs = world.clock.monotonic();
    await stream(world, call);
    expect(outcomes(call.attempts)).toEqual(["a:upstream_rate_limited", "a:served"]);
    expect(world.clock.monotonic() - beganMs).toBe(1_000);
  });

  it.each(["upstream_rejected", "upstream_timeout", "upstream_refused_us"] as const)(
    "is not retried when the failure is permanent: %s",
    async (code) => {
      const world = createWorld({ scripts: { a: [fails(failure(code))] } });
      expect((await stream(world)).failure).toMatchObject({ code });
      expect(world.provider.calls).toHaveLength(1);
    },
  );

  it("is not retried when its retry-after exceeds the limit", async () => {
    const busy = new Failure("upstream_unavailable", "Busy.", { retryAfterMs: 30_000 });
    const world = createWorld({ scripts: { a: [fails(busy)] } });
    expect((await stream(world)).failure).toMatchObject({ retryAfterMs: 30_000 });
    expect(world.provider.calls).toHaveLength(1);
  });

  it("is not retried while its circuit breaker is open", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable)] }, breaker: { failures: 1 } });
    await stream(world);
    expect(world.provider.calls).toHaveLength(1);
  });

  it("is not retried while too many other retries are in flight", async () => {
    const world = createWorld({ scripts: { a: [fails(failure("upstream_rate_limited"))] } });
    const plan = world.router.plan(create(CompletionRequestSchema), world.models, { mode: "stream", rules: NO_RULES });
    const tenAtOnce = async (): Promise<number> => {
      const before = world.provider.calls.length;
      await world.clock.drive(
        Promise.all(Array.from({ length: 10 }, () => collect((emit) => plan.stream(newCall(), emit)))),
      );
      return world.provider.calls.length - before;
    };
    expect(await tenAtOnce()).toBe(10 + 3);
    // Finished retries neither use nor enlarge the budget of later ones.
    for (let count = 0; count < 20; count++) expect((await stream(world)).failure?.attempts).toHaveLength(2);
    expect(await tenAtOnce()).toBe(10 + 3);
  });

  it("can be retried repeatedly by requests that were served or cancelled before", async () => {
    const world = createWorld({
      scripts: { a: Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? fails(unavailable) : serves("hi"))) },
    });
    for (let count = 0; count < 5; count++) expect((await stream(world)).failure).toBeUndefined();
    const call = newCall();
    world.clock.after(10, () => call.caller.abort(new Failure("cancelled", "Gone.")));
    expect((await stream(world, call)).failure).toMatchObject({ code: "cancelled" });
    expect(world.provider.calls).toHaveLength(11);
  });
});

describe("fallbacks", () => {
  it("come after the primary's own retry, in the order of the list, once each", async () => {
    const scripts = { a: [fails(unavailable)], b: [fails(unavailable)], c: [serves("hi")] };
    const call = newCall();
    const { batches } = await stream(createWorld({ scripts }), call);
    expect(outcomes(call.attempts)).toEqual([
      "a:upstream_unavailable",
      "a:upstream_unavailable",
      "b:upstream_unavailable",
      "c:served",
    ]);
    expect(batches[0]![0]!.event).toMatchObject({ case: "start", value: { model: "c", id: "chatcmpl-1" } });
  });

  it.each([
    "upstream_rejected",
    "upstream_rate_limited",
    "upstream_unavailable",
    "upstream_timeout",
    "upstream_protocol",
    "upstream_refused_us",
  ] as const)("are tried after any failure of the provider: %s", async (code) => {
    const world = createWorld({ scripts: { a: [fails(failure(code))], b: [serves("hi")] } });
    expect(said((await stream(world)).batches)).toBe("start hi choiceFinish report");
    const answer = await whole(world);
    expect(answer).toMatchObject({ model: { id: "b" } });
  });

  it.each(["invalid_request", "internal", "overloaded"] as const)(
    "are not tried after a failure that is not the provider's: %s",
    async (code) => {
      const world = createWorld({ scripts: { a: [fails(failure(code))], b: [serves("hi")] } });
      const { failure: shown } = await stream(world);
      expect(shown).toMatchObject({ code });
      expect(outcomes(shown!.attempts)).toEqual([`a:${code}`]);
    },
  );

  it("are not tried after an internal error, which is not shown", async () => {
    const broken = new TypeError("secret") as unknown as Failure;
    const world = createWorld({ scripts: { a: [fails(broken)], b: [serves("hi")] } });
    expect((await stream(world)).failure).toMatchObject({
      code: "internal",
      message: "The gateway failed unexpectedly.",
    });
  });

  it("leave the primary's failure to be returned when all fail", async () => {
    const scripts = {
      a: [fails(failure("upstream_rejected", "Too long."))],
      b: [fails(failure("upstream_refused_us"))],
    };
    const { failure: shown } = await stream(createWorld({ scripts }));
    expect(shown).toMatchObject({ code: "upstream_rejected", message: "Too long." });
    expect(outcomes(shown!.attempts)).toEqual(["a:upstream_rejected", "b:upstream_refused_us"]);
  });

  it("that cannot accept the request are skipped, with the reason", async () => {
    const world = createWorld({
      scripts: { a: [fails(failure("upstream_rejected"))], b: [], c: [serves("hi")] },
      translations: { b: new Failure("invalid_request", "b takes no pictures.") },
    });
    const call = newCall();
    await stream(world, call);
    expect(outcomes(call.attempts)).toEqual(["a:upstream_rejected", "b:skipped", "c:served"]);
    expect(call.attempts[1]).toMatchObject({ reason: "b takes no pictures.", durationMs: 0 });
    expect(call.attempts[1]!.upstreamStatus).toBeUndefined();
  });

  it("that would lose a field of a strict request are skipped", async () => {
    const world = createWorld({
      scripts: { a: [fails(failure("upstream_rejected"))], b: [], c: [serves("hi")] },
      translations: { b: { omitted: [unsupported("seed")] } },
    });
    const call = newCall();
    await stream(world, call, { strict: true });
    expect(outcomes(call.attempts)).toEqual(["a:upstream_rejected", "b:skipped", "c:served"]);
    expect(call.attempts[1]!.reason).toBe("seed: is not supported by b, and the request is strict.");
  });

  it("with an open circuit breaker are skipped", async () => {
    const world = createWorld({
      scripts: { a: [fails(failure("upstream_rejected"))], b: [fails(unavailable)], c: [serves("hi")] },
      breaker: { failures: 1 },
    });
    await stream(world);
    const call = newCall();
    await stream(world, call);
    expect(outcomes(call.attempts)).toEqual(["a:upstream_rejected", "b:skipped", "c:served"]);
    expect(call.attempts[1]!.reason).toBe("circuit breaker open");
  });

  it("are measured and reserved also when the primary was skipped", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable)], b: [serves("hi")] }, breaker: { failures: 1 } });
    await stream(world);
    const call = newCall();
    const reserved: string[] = [];
    const reserveAnother = async ({ id }: Model): Promise<Failure> => {
      reserved.push(id);
      return new Failure("budget_spent", "No money.");
    };
    await stream(world, { ...call, reserveAnother });
    expect(reserved).toEqual(["b"]);
    expect(outcomes(call.attempts)).toEqual(["a:skipped", "b:skipped"]);
  });

  it("are tried at once when the primary's breaker is open, and its failure is returned when they fail too", async () => {
    const world = createWorld({
      scripts: { a: [fails(unavailable)], b: [serves("hi"), fails(failure("upstream_rejected"))] },
      breaker: { failures: 1 },
    });
    await stream(world);
    const { failure: shown } = await stream(world);
    expect(shown).toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream model is temporarily disabled after repeated failures (circuit breaker open).",
      retryAfterMs: 10_000,
    });
    expect(outcomes(shown!.attempts)).toEqual(["a:skipped", "b:upstream_rejected"]);
  });

  it("are reported with the fields that the serving one omitted", async () => {
    const world = createWorld({
      scripts: { a: [fails(failure("upstream_rejected"))], b: [serves("hi")] },
      translations: { a: { omitted: [unsupported("seed")] }, b: { omitted: [unsupported("logit_bias")] } },
    });
    const { batches } = await stream(world);
    const last = batches.at(-1)![0]!.event;
    expect(last).toMatchObject({
      case: "report",
      value: { omitted: [unsupported("logit_bias")], attempts: [{}, { model: "b" }] },
    });
  });
});

describe("after the first content", () => {
  it("a failure is final: no retry, no fallback", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable, "half an")], b: [serves("hi")] } });
    const { batches, failure: shown } = await stream(world);
    expect(said(batches)).toBe("start half an");
    expect(shown).toMatchObject({ code: "upstream_unavailable" });
    expect(outcomes(shown!.attempts)).toEqual(["a:upstream_unavailable"]);
  });

  it("the request body is released, for this model and others", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable)], b: [serves("hi")] } });
    const translate = vi.spyOn(world.provider, "translate");
    const plan = world.router.plan(create(CompletionRequestSchema), world.models, { mode: "stream", rules: NO_RULES });
    const bodies = (): readonly string[] =>
      translate.mock.results.map(({ value }) => (value as { body: Buffer }).body.toString());
    expect(bodies()).toEqual(["{}"]);
    const { batches } = await world.clock.drive(collect((emit) => plan.stream(newCall(), emit)));
    expect(said(batches)).toBe("start hi choiceFinish report");
    expect(bodies()).toEqual(["", ""]);
  });

  it.each([
    ["is given back when all of it was written", true, [serves("hi")], 0],
    ["is left to the connection that may still write it", false, [serves("hi")], 100_000],
    ["is given back when the provider has refused it, and all of it was written", true, [fails(rejected)], 0],
    ["that was refused is left to the connection that may still write it", false, [fails(rejected)], 100_000],
    ["is sent again when it has failed, and given back then", true, [fails(unavailable), serves("hi")], 0],
  ])("the memory of a large request %s", async (_, isWritten, scripts, left) => {
    const body = Buffer.alloc(100_000);
    const world = createWorld({ scripts: { a: scripts }, translations: { a: { body } } });
    const streams = world.provider.stream.bind(world.provider);
    vi.spyOn(world.provider, "stream").mockImplementation((call, emit) => {
      expect(body).toHaveLength(100_000);
      call.progress!.isWritten = isWritten;
      return streams(call, emit);
    });
    await stream(world);
    expect(body.buffer.byteLength).toBe(left);
  });

  it("the first-content limit no longer applies, however slow the rest is", async () => {
    const slow = { ...serves("one", "two", "three"), pauseMs: 50_000 };
    const { batches } = await stream(createWorld({ scripts: { a: [slow] } }));
    expect(said(batches)).toBe("start one two three choiceFinish report");
  });

  it("a stream that its provider never started is upstream_protocol, and the next model is tried", async () => {
    const world = createWorld({ scripts: { a: [{ ending: "end" }], b: [serves("hi")] } });
    const call = newCall();
    await stream(world, call);
    expect(outcomes(call.attempts)).toEqual(["a:upstream_protocol", "a:upstream_protocol", "b:served"]);
  });
});

describe("timing of attempts", () => {
  it("applies the first-content timeout per attempt, and then tries the next model", async () => {
    const world = createWorld({ scripts: { a: [hangs()], b: [serves("hi")] } });
    const call = newCall();
    await stream(world, call);
    expect(outcomes(call.attempts)).toEqual(["a:upstream_timeout", "b:served"]);
    expect(call.attempts[0]).toMatchObject({
      durationMs: 60_000,
      reason: "The upstream provider did not answer in time.",
    });
  });

  it("gives a whole answer the sum of the first-content and idle timeouts", async () => {
    const world = createWorld({ scripts: { a: [{ ...serves("hi"), pauseMs: 59_000 }] } });
    expect(await whole(world)).toMatchObject({ model: { id: "a" } });
    const slower = createWorld({ scripts: { a: [{ ...serves("hi"), pauseMs: 61_000 }] } });
    expect(await whole(slower)).toMatchObject({ code: "upstream_timeout" });
  });

  it("trap 17: gives a whole answer that is fetched as a stream the first-content timeout", async () => {
    const slow = { ...serves("hi", "there"), pauseMs: 59_000 };
    const patient = createWorld({ scripts: { a: [slow] }, translations: { a: { streamed: true } } });
    expect(await whole(patient)).toMatchObject({ model: { id: "a" } });
    const world = createWorld({ scripts: { a: [hangs()] }, translations: { a: { streamed: true } } });
    const call = newCall();
    await whole(world, call);
    expect(call.attempts[0]!.durationMs).toBe(60_000);
  });

  it("does not count the time in which the provider is not read for want of memory, but in the total timeout", async () => {
    const clock = new FakeClock();
    const overall = new TimeLimit(new AbortController().signal, clock);
    overall.start(100_000, "in all");
    const limit = new TimeLimit(overall, clock);
    limit.start(60_000, "first content");
    await clock.pass(50_000);
    const memory = Promise.withResolvers<void>();
    limit.suspend(memory.promise);
    await clock.pass(30_000);
    memory.resolve();
    await clock.pass(9_000);
    expect(limit.isOver).toBe(false);
    await clock.pass(1_000);
    expect(limit.reason).toMatchObject({ code: "upstream_timeout", message: "first content" });

    const next = new TimeLimit(overall, clock);
    next.start(5_000, "first content");
    next.suspend(new Promise(() => {}));
    await clock.pass(10_000);
    expect(next.reason).toMatchObject({ code: "upstream_timeout", message: "in all" });
  });

  it("applies the total timeout also in the middle of an answer", async () => {
    const facts = { timeouts: { firstContentMs: 60_000, idleMs: 120_000, totalMs: 100_000, settleMs: 0 } };
    const endless = { ...serves("one", "two", "three", "four"), pauseMs: 30_000 };
    const { batches, failure: shown } = await stream(
      createWorld({ scripts: { a: [endless], b: [serves("hi")] }, facts }),
    );
    expect(said(batches)).toBe("start one two three");
    expect(shown).toMatchObject({
      code: "upstream_timeout",
      message: "The completion took longer than this gateway allows.",
    });
  });

  it("does not wait longer than 20 s for a caller that hardly reads: the hold of its budget ends a minute after the total timeout", async () => {
    const facts = { timeouts: { firstContentMs: 60_000, idleMs: 120_000, totalMs: 100_000, settleMs: 0 } };
    const { router, models, clock } = createWorld({ scripts: { a: [serves("one")] }, facts });
    const plan = router.plan(create(CompletionRequestSchema), models, { mode: "stream", rules: NO_RULES });
    const beganMs = clock.monotonic();
    const streaming = plan.stream(newCall(), () => new Promise(() => {}));
    await expect(clock.drive(streaming)).rejects.toMatchObject({ code: "upstream_timeout" });
    expect(clock.monotonic() - beganMs).toBe(120_000);
    expect(clock.pending).toBe(0);
  });

  it("starts no fallback after the total timeout", async () => {
    const facts = { timeouts: { firstContentMs: 60_000, idleMs: 120_000, totalMs: 60_000, settleMs: 0 } };
    const world = createWorld({ scripts: { a: [hangs()], b: [serves("hi")] }, facts });
    const { failure: shown } = await stream(world);
    expect(outcomes(shown!.attempts)).toEqual(["a:upstream_timeout"]);
  });

  it("is summed in the caller's routing facts", async () => {
    const world = createWorld({
      scripts: { a: [{ ending: failure("upstream_rejected"), pauseMs: 300 }], b: [{ ...serves("hi"), pauseMs: 200 }] },
    });
    const { batches } = await stream(world);
    expect(batches[0]![0]!.event.value).toMatchObject({ upstreamDuration: toDuration(500) });
    expect(batches.at(-1)![0]!.event.value).toMatchObject({ upstreamDuration: toDuration(300 + 600) });
  });
});

describe("a backoff", () => {
  it("counts as time waiting for upstreams, and separates the starts of two attempts", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable), { ...serves("hi"), pauseMs: 200 }] } });
    const call = { ...newCall(), arrivedMs: world.clock.monotonic() - 30 };
    const { batches } = await stream(world, call);
    expect(call.attempts.map(({ startMs, durationMs }) => [startMs, durationMs])).toEqual([
      [30, 0],
      [30 + 50, 600],
    ]);
    expect(batches[0]![0]!.event.value).toMatchObject({ upstreamDuration: toDuration(50 + 200) });
    expect(batches.at(-1)![0]!.event.value).toMatchObject({ upstreamDuration: toDuration(50 + 600) });
  });

  it("is absent before a skipped attempt, which starts when it is skipped", async () => {
    const refused = new Failure("upstream_rejected", "No.");
    const world = createWorld({ scripts: { a: [{ ending: refused, pauseMs: 300 }], b: [serves("hi")] } });
    const call = { ...newCall(), arrivedMs: world.clock.monotonic() };
    await stream(world, { ...call, reserveAnother: async () => new Failure("budget_spent", "No money.") });
    expect(call.attempts.map(({ outcome, startMs }) => [outcome, startMs])).toEqual([
      ["upstream_rejected", 0],
      ["skipped", 300],
    ]);
  });
});

describe("a cancelled call", () => {
  const left = new Failure("cancelled", "The caller left.");

  it("before any attempt has no attempts", async () => {
    const world = createWorld({ scripts: { a: [serves("hi")] } });
    const call = newCall();
    call.caller.abort(left);
    expect((await stream(world, call)).failure).toMatchObject({ code: "cancelled" });
    expect(world.provider.calls).toEqual([]);
  });

  it("during a backoff ends the wait at once", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable)] }, random: () => 1 });
    const call = newCall();
    const plan = world.router.plan(create(CompletionRequestSchema), world.models, { mode: "stream", rules: NO_RULES });
    const run = collect((emit) => plan.stream(call, emit));
    await world.clock.pass(99);
    call.caller.abort(left);
    expect((await run).failure).toMatchObject({ code: "cancelled" });
    expect(outcomes(call.attempts)).toEqual(["a:upstream_unavailable"]);
    expect(world.clock.pending).toBe(0);
    expect(getEventListeners(call.signal, "abort")).toEqual([]);
  });

  it("before content ends the upstream call, without another attempt", async () => {
    const world = createWorld({ scripts: { a: [hangs()], b: [serves("hi")] }, breaker: { failures: 1 } });
    const call = newCall();
    const plan = world.router.plan(create(CompletionRequestSchema), world.models, { mode: "stream", rules: NO_RULES });
    const run = collect((emit) => plan.stream(call, emit));
    await world.clock.pass(1_000);
    call.caller.abort(left);
    expect((await run).failure).toMatchObject({ code: "cancelled" });
    expect(world.provider.calls).toMatchObject([{ state: "aborted" }]);
    expect(outcomes(call.attempts)).toEqual(["a:cancelled"]);
    expect([...world.router.health().values()]).toEqual(["closed"]);
  });

  it("in the middle of a whole answer ends the upstream call", async () => {
    const world = createWorld({ scripts: { a: [hangs()] } });
    const call = newCall();
    const plan = world.router.plan(create(CompletionRequestSchema), world.models, { mode: "whole", rules: NO_RULES });
    const run = plan.create(call);
    await world.clock.pass(1_000);
    call.caller.abort(left);
    await expect(run).rejects.toMatchObject({ code: "cancelled" });
    expect(world.provider.calls).toMatchObject([{ state: "aborted" }]);
    expect(world.clock.pending).toBe(0);
  });

  it("after content closes the upstream stream when the consumer stops reading, and is recorded as cancelled", async () => {
    const world = createWorld({ scripts: { a: [serves("one", "two", "three")] }, breaker: { failures: 1 } });
    const call = newCall();
    const plan = world.router.plan(create(CompletionRequestSchema), world.models, { mode: "stream", rules: NO_RULES });
    const batches = batchesOf(
      (emit) => plan.stream(call, emit),
      () => call.caller.abort(left),
    );
    for await (const batch of batches) if (said([batch]) === "two") break;
    expect(world.provider.calls).toMatchObject([{ state: "aborted", given: 2 }]);
    expect(outcomes(call.attempts)).toEqual(["a:cancelled"]);
    expect([...world.router.health().values()]).toEqual(["closed"]);
    expect(world.clock.pending).toBe(0);
    expect(getEventListeners(call.signal, "abort")).toEqual([]);
  });

  it("whose deadline passed fails with that reason, without another attempt", async () => {
    const world = createWorld({ scripts: { a: [hangs()], b: [serves("hi")] } });
    const call = newCall();
    world.clock.after(5_000, () => call.caller.abort(new Failure("deadline_exceeded", "Too late.")));
    const { failure: shown } = await stream(world, call);
    expect(shown).toMatchObject({ code: "deadline_exceeded", message: "Too late." });
    expect(outcomes(shown!.attempts)).toEqual(["a:deadline_exceeded"]);
  });
});
