import { getEventListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type CompletionChunk, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { type Attempt, toAttemptMessage } from "../../src/core/attempt.ts";
import { createCompletions } from "../../src/core/completions.ts";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import type { CompletionRecord, LedgerEntry } from "../../src/core/ledger.ts";
import type { Demand } from "../../src/core/limiter.ts";
import type { Model } from "../../src/core/model.ts";
import { createRoute, type Route, type RoutePolicy } from "../../src/core/route.ts";
import type { Router, RouterCall } from "../../src/core/router.ts";
import { callOf, memoryLedger, notingLimiter, seal } from "../support/core-ports.ts";
import { toPrice } from "../support/prices.ts";
import type { Script, ScriptedCall } from "../support/scripted-provider.ts";
import { toChunks } from "../support/to-chunks.ts";
import { createWorld, say, stop, stream, type World } from "./routed.ts";

/*
 * Invariants of the router for any behaviour of upstream models and callers. A case is drawn at random, run on a fake
 * clock, and judged only by its visible effects.
 */

/** Behaviour of one candidate's upstream model. */
interface Candidate {
  /** The first and the second call. */
  readonly scripts: readonly [Script, Script];
  readonly health: "well" | "down" | "cannot take it";
}

/** Behaviour of the caller: reads everything, only a number of batches, or leaves after a time. */
interface Caller {
  readonly takes: number;
  readonly gone: { readonly afterMs: number; readonly as: "cancelled" | "deadline_exceeded" } | undefined;
  /** Time the caller takes for each batch. */
  readonly readsMs: number;
}

interface Case {
  readonly candidates: readonly Candidate[];
  /** The candidates are the targets of one name; undefined: one model and its fallbacks. */
  readonly route: Pick<Route, "policy" | "affinity"> | undefined;
  /** Time after which the first attempt is hedged. */
  readonly hedgeMs: number | undefined;
  readonly caller: Caller;
}

const FAILURES: readonly FailureCode[] = [
  "upstream_rejected",
  "upstream_rate_limited",
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_protocol",
  "upstream_refused_us",
  "invalid_request",
  "internal",
];
const TOTAL_MS = 200_000;
const PRICE = toPrice({ input: 5_000_000, output: 25_000_000, cachedInput: 500_000, imageOutput: 0 });
/** Enough failures to open a breaker before the case begins. */
const WARM_UP = 3;

const anyFailure = fc
  .record({
    code: fc.constantFrom(...FAILURES),
    retryAfterMs: fc.option(fc.constantFrom(0, 1_000, 30_000), { nil: undefined }),
  })
  .map(
    ({ code, retryAfterMs }) => new Failure(code, "As scripted.", retryAfterMs === undefined ? {} : { retryAfterMs }),
  );

const anyScript: fc.Arbitrary<Script> = fc
  .record({
    sizes: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 4 }),
    ending: fc.oneof(
      { weight: 2, arbitrary: fc.constant("end" as const) },
      { weight: 1, arbitrary: fc.constant("hang" as const) },
      { weight: 3, arbitrary: anyFailure },
    ),
    pauseMs: fc.constantFrom(0, 0, 10, 20_000, 70_000),
  })
  .map(({ sizes, ending, pauseMs }) => {
    // Every delta has a unique text.
    const batches: CompletionChunk[][] = sizes.map((size, batch) =>
      Array.from({ length: size }, (_, index) => say(`${batch}.${index} `)),
    );
    if (ending === "end" && batches.length > 0) batches.push([stop]);
    return { batches, ending, pauseMs };
  });

const anyCase: fc.Arbitrary<Case> = fc.record({
  candidates: fc.array(
    fc.record({
      scripts: fc.tuple(anyScript, anyScript),
      health: fc.oneof(
        { weight: 5, arbitrary: fc.constant("well" as const) },
        { weight: 1, arbitrary: fc.constantFrom("down" as const, "cannot take it" as const) },
      ),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  route: fc.option(
    fc.record({
      policy: fc.constantFrom<RoutePolicy>("ordered", "weighted", "least_latency", "cheapest"),
      affinity: fc.boolean(),
    }),
    { nil: undefined, freq: 2 },
  ),
  hedgeMs: fc.option(fc.constantFrom(5, 1_000, 30_000), { nil: undefined }),
  caller: fc.record({
    takes: fc.oneof(
      { weight: 3, arbitrary: fc.constant(Infinity) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 4 }) },
    ),
    gone: fc.option(
      fc.record({
        afterMs: fc.oneof(fc.nat(200), fc.nat(250_000)),
        as: fc.constantFrom("cancelled" as const, "deadline_exceeded" as const),
      }),
      { nil: undefined, freq: 2 },
    ),
    readsMs: fc.constantFrom(0, 0, 5, 50_000),
  }),
});

/** All visible effects of one case. */
interface Seen {
  readonly world: World;
  /** The order of the plan. */
  readonly order: readonly Model[];
  /** Models for which the router has reserved. */
  readonly reserved: readonly string[];
  /** Calls of the case itself, without the warm-up. */
  readonly calls: readonly ScriptedCall[];
  readonly chunks: readonly CompletionChunk[];
  readonly failure: Failure | undefined;
  readonly records: readonly CompletionRecord[];
  /** Reservation, release and ledger entry. */
  readonly ledgered: {
    readonly demands: readonly Demand[];
    readonly extensions: readonly number[];
    readonly releases: readonly number[];
    readonly entries: readonly LedgerEntry[];
  };
  readonly signal: AbortSignal;
}

async function run({ candidates, route, hedgeMs, caller }: Case, mode: "stream" | "whole"): Promise<Seen> {
  const id = (index: number): string => `m${index}`;
  const well: Candidate[] = candidates.map((each, index) =>
    // Otherwise the request is refused before it reaches the router.
    index === 0 && each.health === "cannot take it" ? { ...each, health: "well" } : each,
  );
  const warmUp: Script[] = Array.from({ length: WARM_UP }, () => ({
    ending: new Failure("upstream_refused_us", "Warm-up."),
  }));
  const hedge = hedgeMs === undefined ? undefined : { after: { ms: hedgeMs }, budget: 1 };
  const world = createWorld({
    scripts: Object.fromEntries(
      well.map(({ scripts, health }, index) => [id(index), health === "down" ? [...warmUp, ...scripts] : scripts]),
    ),
    translations: Object.fromEntries(
      well.flatMap(({ health }, index) =>
        health === "cannot take it" ? [[id(index), new Failure("invalid_request", "It cannot take this.")]] : [],
      ),
    ),
    facts: {
      timeouts: { firstContentMs: 60_000, idleMs: 120_000, totalMs: TOTAL_MS, settleMs: 0 },
      hedge,
      price: PRICE,
    },
    breaker: { failures: WARM_UP, openMs: 50_000 },
  });
  for (const [index, { health }] of well.entries()) {
    const failures = health === "down" ? WARM_UP : 0;
    for (let count = 0; count < failures; count++) await stream({ ...world, models: [world.models[index]!] });
  }
  const { clock, router, models, provider } = world;
  const before = provider.calls.length;

  const records: CompletionRecord[] = [];
  const { limiter, demands, extensions, releases } = notingLimiter();
  const { ledger, entries } = memoryLedger();
  let order: readonly Model[] = models;
  const reserved: string[] = [];
  const notingRouter: Router = {
    ...router,
    plan(...planned) {
      const plan = router.plan(...planned);
      order = plan.candidates;
      const noting = (call: RouterCall): RouterCall => ({
        ...call,
        reserveAnother(model, sent, beside) {
          reserved.push(upstreamOf(model.id));
          return call.reserveAnother(model, sent, beside);
        },
      });
      return {
        candidates: plan.candidates,
        omitted: plan.omitted,
        prompt: plan.prompt,
        sent: plan.sent,
        count: (asked) => plan.count(asked),
        create: (call) => plan.create(noting(call)),
        stream: (call, emit) => plan.stream(noting(call), emit),
      };
    },
  };
  if (route !== undefined) {
    const targets = models.map((model, index) => ({ model, weight: index + 1, when: undefined }));
    const pool = createRoute({ id: "pool", description: "", created: 0, ...route, hedge, targets });
    // What a script refuses does not follow from the facts of its model.
    const unlike = pool.targets.map((target) => ({ ...target, kind: target.model.id }));
    notingRouter.find = () => ({ ...pool, targets: unlike });
  }
  const completions = createCompletions({
    router: notingRouter,
    clock,
    permit: () => {},
    limiter,
    ledger,
    seal,
    recorder: { record: (entry) => records.push(entry) },
  });
  const controller = new AbortController();
  const { signal } = controller;
  const cancelTimer =
    caller.gone && clock.after(caller.gone.afterMs, () => controller.abort(new Failure(caller.gone!.as, "Gone.")));
  const request = create(CompletionRequestSchema, {
    model: route === undefined ? models[0]!.id : "pool",
    fallbackModels: route === undefined ? models.slice(1).map((model) => model.id) : [],
    messages: [create(MessageSchema, { role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } }] })],
  });
  const call = callOf({ signal, arrivedMs: clock.monotonic() });

  const chunks: CompletionChunk[] = [];
  let failure: Failure | undefined;
  // Of a caller that reads longer than the gateway waits.
  let cancelReading: (() => void) | undefined;
  const read = async (): Promise<void> => {
    if (mode === "whole") {
      const { choices, usage, report } = await completions.create(request, call);
      chunks.push(...toChunks({ choices, usage }));
      chunks.push({ event: { case: "report", value: report! } } as CompletionChunk);
      return;
    }
    let taken = 0;
    await completions.stream(request, call, (batch) => {
      expect(batch.length).toBeGreaterThan(0);
      chunks.push(...batch);
      taken += 1;
      if (taken >= caller.takes) controller.abort(new Failure("cancelled", "Left."));
      else if (caller.readsMs > 0)
        return new Promise((resolve) => void (cancelReading = clock.after(caller.readsMs, resolve)));
      return undefined;
    });
  };
  try {
    await clock.drive(read());
  } catch (reason) {
    if (!(reason instanceof Failure)) throw reason;
    failure = reason;
  }
  cancelTimer?.();
  cancelReading?.();
  const ledgered = { demands, extensions, releases, entries };
  return { world, order, reserved, calls: provider.calls.slice(before), chunks, failure, records, ledgered, signal };
}

const isContent = ({ event }: CompletionChunk): boolean => event.case !== "start" && event.case !== "report";
const upstreamOf = (model: string): string => `${model}-upstream`;

/** No content is repeated, lost or from a second model: the received text is a prefix of one call's text. */
function expectOneAnswer({ chunks, calls }: Seen): void {
  const content = chunks.filter(isContent);
  if (chunks.length === 0) return;
  const [start] = chunks;
  expect(start!.event.case).toBe("start");
  expect(chunks.filter(({ event }) => event.case === "start")).toHaveLength(1);
  const last = calls.find(({ given }) => given > 0) ?? calls.at(-1)!;
  expect(upstreamOf((start!.event.value as { model: string }).model)).toBe(last.model);
  expect(content).toEqual(last.script.batches!.slice(0, last.given).flat());
  for (const other of calls) expect(other === last ? 0 : other.given).toBe(0);
  const ends = chunks.map(({ event }, index) => (event.case === "report" ? index : -1)).filter((index) => index >= 0);
  expect(ends).toEqual(last.state === "ended" ? [chunks.length - 1] : []);
}

/** The primary is called at most twice, then each fallback at most once, in the order of the list. */
function expectPlanKept({ calls, order }: Seen): void {
  const names = calls.map((call) => call.model);
  const upstreams = order.map((model) => upstreamOf(model.id));
  const planned = [upstreams[0], ...upstreams];
  let at = 0;
  for (const name of names) {
    at = planned.indexOf(name, at) + 1;
    expect(at, `${names.join()} is not in the plan`).toBeGreaterThan(0);
  }
}

/** Every attempt, called or skipped, is recorded once and in order, and nothing else. */
function expectAttemptsComplete({ records, calls, chunks, failure, order }: Seen): void {
  const { attempts } = records[0]!;
  const begun = byStart(attempts);
  const called = begun.filter((attempt) => attempt.outcome !== "skipped");
  expect(called.map((attempt) => upstreamOf(attempt.model))).toEqual(calls.map((call) => call.model));
  calls.forEach(({ state }, index) => {
    const { outcome } = called[index]!;
    expect(outcome === "served", `${outcome} after ${state}`).toBe(
      // Of two whole answers at the same time one is lost.
      state === "ended" && outcome !== "upstream_protocol" && outcome !== "cancelled",
    );
  });
  const ids = order.map((model) => model.id);
  const noted = begun.map((attempt) => attempt.model);
  const retried = noted[1] === ids[0];
  expect(retried ? noted.slice(1) : noted).toEqual(ids.slice(0, noted.length - (retried ? 1 : 0)));
  if (failure !== undefined) expect(failure.attempts).toEqual(attempts);
  const report = chunks.at(-1)?.event;
  if (report?.case === "report") expect(report.value.attempts).toEqual(attempts.map(toAttemptMessage));
  else expect(attempts.some((attempt) => attempt.outcome === "served")).toBe(false);
}

/** No open upstream call, timer or listener remains. */
function expectNothingLeft({ calls, world: { clock }, signal }: Seen): void {
  for (const call of calls) {
    expect(call.state).not.toBe("open");
    expect(getEventListeners(call.signal, "abort")).toEqual([]);
  }
  expect(clock.pending).toBe(0);
  expect(getEventListeners(signal, "abort")).toEqual([]);
}

/** All attempts together cost no more than was held when they began. */
function expectCovered({ ledgered: { demands, extensions, entries } }: Seen): void {
  for (const { costMicroUsd } of entries)
    expect(costMicroUsd).toBeLessThanOrEqual(extensions.reduce((sum, more) => sum + more, demands[0]!.costMicroUsd!));
}

/** There is one ledger entry, with the outcome. */
function expectOneRecord({ records, ledgered, chunks, failure }: Seen): void {
  expect(records).toHaveLength(1);
  const { demands, releases, entries } = ledgered;
  expect([releases.length, entries.length]).toEqual([demands.length, demands.length]);
  if (entries.length > 0) expect(entries[0]!.outcome).toBe(records[0]!.outcome);
  const served = chunks.at(-1)?.event.case === "report";
  expect(records[0]!.outcome).toBe(served ? "served" : failure!.code);
  expect(records[0]!.failure).toBe(failure);
}

/** The returned failure: the cancellation, the broken answer, the total timeout, or the primary's failure. */
function rightFailure({ failure, signal, chunks, records, order }: Seen): string | undefined {
  if (failure === undefined) return undefined;
  const { attempts } = records[0]!;
  const last = attempts.at(-1);
  if (signal.aborted && failure.code === (signal.reason as Failure).code) return failure.code;
  if (failure.message.startsWith("The completion took longer")) return "upstream_timeout";
  if (chunks.length > 0 || !failure.code.startsWith("upstream_")) return last!.outcome;
  if (byStart(attempts).at(-1)!.model !== order.at(-1)!.id) return "that of another model";
  return (
    attempts.findLast(({ model, outcome }) => model === order[0]!.id && outcome !== "skipped")?.outcome ??
    "upstream_unavailable"
  );
}

/** Attempts in the order in which they began; they are noted at their ends. */
const byStart = (attempts: readonly Attempt[]): Attempt[] =>
  attempts.toSorted((one, other) => one.startMs - other.startMs);

/**
 * Attempts follow one another, but for a second one that begins when the first one has been hedged; and each but the first has its
 * reservation.
 */
function expectOneAtATime({ records, calls, reserved }: Seen, { hedgeMs = Infinity }: Case): void {
  const attempts = byStart(records[0]!.attempts);
  let endMs = 0;
  for (const [index, { startMs, durationMs }] of attempts.entries()) {
    const isHedge = index === 1 && startMs >= attempts[0]!.startMs + hedgeMs;
    // Both are rounded.
    if (!isHedge) expect(startMs).toBeGreaterThanOrEqual(endMs - 1);
    endMs = Math.max(endMs, startMs + durationMs);
  }
  let at = 0;
  for (const { model } of calls.slice(1)) {
    at = reserved.indexOf(model, at) + 1;
    expect(at, `${model} has no reservation`).toBeGreaterThan(0);
  }
}

/** All candidates are planned: as they are listed, or a name's in an order whose first one can take the request and whose breaker is not open. */
function expectGoodOrder({ order, world: { models } }: Seen, { candidates, route }: Case): void {
  const places = order.map((model) => models.indexOf(model));
  const listed = [...models.keys()];
  expect(new Set(places)).toEqual(new Set(listed));
  // The first candidate takes every request.
  const takes = listed.filter((place) => place === 0 || candidates[place]!.health !== "cannot take it");
  const good = takes.filter((place) => candidates[place]!.health !== "down");
  const mayBeFirst = good.length > 0 ? good : takes;
  const sorted = route?.policy === "ordered" ? mayBeFirst.slice(0, 1) : mayBeFirst;
  expect(route === undefined ? [0] : sorted).toContain(places[0]);
  expect(route === undefined ? places : listed).toEqual(listed);
}

function judge(seen: Seen, drawn: Case): void {
  expectOneRecord(seen);
  expectCovered(seen);
  expectOneAtATime(seen, drawn);
  expectPlanKept(seen);
  expectAttemptsComplete(seen);
  expectNothingLeft(seen);
  expect(seen.failure?.code).toBe(rightFailure(seen));
}

it("keeps its invariants for a stream, with any upstream models and callers", async () => {
  await fc.assert(
    fc.asyncProperty(anyCase, async (drawn) => {
      const seen = await run(drawn, "stream");
      judge(seen, drawn);
      expectOneAnswer(seen);
      expectGoodOrder(seen, drawn);
    }),
    { numRuns: 600 },
  );
});

it("keeps its invariants for a whole answer, with any upstream models and callers", async () => {
  await fc.assert(
    fc.asyncProperty(anyCase, async (drawn) => judge(await run(drawn, "whole"), drawn)),
    { numRuns: 400 },
  );
});
