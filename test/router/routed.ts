import { create } from "@bufbuild/protobuf";
import {
  type CompletionChunk,
  CompletionRequestSchema,
  FinishReason,
  type PartDelta,
} from "../../gen/parley/v1/completion_pb.js";
import type { Attempt } from "../../src/core/attempt.ts";
import { deltaChunk, finishChunk } from "../../src/core/chunks.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import type { SendingRules } from "../../src/core/provider-options.ts";
import type { Emit, Translation } from "../../src/core/provider.ts";
import type { Routed, RouterCall, UncountedAttempt } from "../../src/core/router.ts";
import { createRouter, type OwnedRouter, type RouterOptions } from "../../src/router/router.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { type ModelFacts, modelOf, type Script, ScriptedProvider } from "../support/scripted-provider.ts";

/** A router with scripted models and a fake clock. */
export interface World {
  readonly clock: FakeClock;
  readonly provider: ScriptedProvider;
  readonly models: readonly Model[];
  readonly router: OwnedRouter;
}

export interface WorldOptions {
  /** Script of each model by its ID, in the order of the plan. */
  readonly scripts: Readonly<Record<string, readonly Script[]>>;
  readonly translations?: Readonly<Record<string, Partial<Translation> | Failure>>;
  readonly facts?: ModelFacts;
  readonly random?: () => number;
  readonly breaker?: Partial<RouterOptions["breaker"]>;
}

export function createWorld({ scripts, translations = {}, facts, random = () => 0.5, breaker }: WorldOptions): World {
  const clock = new FakeClock();
  const upstream = <T>(byId: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(byId).map(([id, value]) => [`${id}-upstream`, value]));
  const provider = new ScriptedProvider(clock, upstream(scripts), upstream(translations));
  const models = Object.keys(scripts).map((id) => modelOf(id, provider, facts));
  const router = createRouter({
    models,
    clock,
    random,
    backoff: { baseMs: 100, capMs: 2_000 },
    breaker: { failures: 5, openMs: 10_000, maxOpenMs: 60_000, ...breaker },
  });
  return { clock, provider, models, router };
}

/** Limits of a key without a budget. */
export const NO_RULES: SendingRules = { options: undefined, capped: false, mayDraw: true };

/** One call of the router, with core's arguments. */
export interface TestCall extends RouterCall {
  readonly caller: AbortController;
  /** Billable amounts reported to core. */
  readonly billable: readonly UncountedAttempt[];
}

export function newCall(): TestCall {
  const caller = new AbortController();
  const { signal } = caller;
  const uncounted: UncountedAttempt[] = [];
  return {
    completionId: "chatcmpl-1",
    created: 1_767_225_600,
    signal,
    accountId: "acct_1",
    keyFamilyId: "key_1",
    attempts: [],
    arrivedMs: 0,
    answering: () => undefined,
    uncounted: (attempt) => void uncounted.push(attempt),
    reserveAnother: async () => undefined,
    caller,
    billable: uncounted,
  };
}

/** Result of a stream. */
export interface Streamed {
  readonly batches: readonly (readonly CompletionChunk[])[];
  readonly failure: Failure | undefined;
}

/** Reads a whole stream; the fake clock advances as needed. */
export async function stream(
  world: World,
  call: TestCall = newCall(),
  request: { readonly strict?: boolean } = {},
): Promise<Streamed> {
  const { router, models, clock } = world;
  const plan = router.plan(create(CompletionRequestSchema, request), models, { mode: "stream", rules: NO_RULES });
  return clock.drive(collect((emit) => plan.stream(call, emit)));
}

/** Collects batches until the end or a failure. */
export async function collect(given: (emit: Emit) => Promise<void>): Promise<Streamed> {
  const batches: (readonly CompletionChunk[])[] = [];
  try {
    await given((batch) => void batches.push(batch));
    return { batches, failure: undefined };
  } catch (reason) {
    if (!(reason instanceof Failure)) throw reason;
    return { batches, failure: reason };
  }
}

/** Reads a whole answer; the fake clock advances as needed. */
export async function whole(world: World, call: TestCall = newCall()): Promise<Routed | Failure> {
  const { router, models, clock } = world;
  const plan = router.plan(create(CompletionRequestSchema), models, { mode: "whole", rules: NO_RULES });
  try {
    return await clock.drive(plan.create(call));
  } catch (reason) {
    if (!(reason instanceof Failure)) throw reason;
    return reason;
  }
}

/** Formats attempts: `a:served`. */
export function outcomes(attempts: readonly Attempt[]): string[] {
  return attempts.map(({ model, outcome }) => `${model}:${outcome}`);
}

/** Text of the deltas, and names of other events: `start hi choiceFinish report`. */
export function said(batches: readonly (readonly CompletionChunk[])[]): string {
  return batches
    .flat()
    .map(({ event }) => (event.case === "partDelta" ? textOf(event.value) : event.case))
    .join(" ");
}

const textOf = ({ content }: PartDelta): string =>
  content.case === "text" ? content.value : (content.case ?? "nothing");

export const say = (text: string): CompletionChunk =>
  deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value: text });
export const stop = finishChunk(0, { reason: FinishReason.STOP, native: "stop" });

/** Answers with these words, one per batch. */
export function serves(...words: readonly string[]): Script {
  return { batches: [...words.map((word) => [say(word)]), [stop]], ending: "end" };
}

/** Fails with this failure after these words. */
export function fails(failure: Failure, ...words: readonly string[]): Script {
  return { batches: words.map((word) => [say(word)]), ending: failure };
}

/** Stays silent after these words. */
export function hangs(...words: readonly string[]): Script {
  return { batches: words.map((word) => [say(word)]), ending: "hang" };
}
