import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { Attempt } from "../core/attempt.ts";
import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { Answer, EmbeddingAnswer, Translation, UpstreamCall } from "../core/provider.ts";
import type { RemainderOutcome } from "../core/router.ts";
import { addChunk, type AnswerSize, NOTHING_RECEIVED, sizeOfChoices } from "../core/token-estimate.ts";
import type { BreakerPermit } from "./breaker.ts";
import type { TimeLimit } from "./time-limit.ts";
import type { LoadedCall } from "./upstream-load.ts";

/** One call of an upstream model. Exactly one of `AttemptRun`'s `served` and `failed` ends it. */
export interface RunningAttempt {
  readonly model: Model;
  /** Whether it is the first attempt of its run, which may be hedged. */
  readonly isFirst: boolean;
  readonly call: UpstreamCall;
  readonly permit: BreakerPermit;
  readonly loaded: LoadedCall;
  readonly limit: TimeLimit;
  readonly translation: Translation;
  readonly startedMs: number;
  /** The provider call, which may outlast the attempt. */
  work: Promise<Answer | EmbeddingAnswer | void> | undefined;
  /** Received parts of the answer that were not emitted to core. */
  unseen: UnseenAnswer | undefined;
  /** Whether its content was emitted to the caller; then a failure is final. */
  committed: boolean;
  /** By the clock's `monotonic`: the first content of a stream. */
  firstContentMs: number | undefined;
  /** Whether another attempt of the run had content first. */
  isLost: boolean;
}

/** Measures received parts of the answer that are not emitted to core. */
export class UnseenAnswer {
  readonly size: AnswerSize = { ...NOTHING_RECEIVED };
  usage: Usage | undefined;

  add(batch: readonly CompletionChunk[]): void {
    for (const chunk of batch) {
      if (chunk.event.case === "usage") this.usage = chunk.event.value;
      else addChunk(this.size, chunk);
    }
  }
}

/** The times that an attempt has reached, in milliseconds since the request arrived. */
export function timesOf(
  { call: { progress }, firstContentMs }: RunningAttempt,
  arrivedMs: number,
): Pick<Attempt, "sentMs" | "headMs" | "firstContentMs"> {
  const { sentMs, headMs } = progress!;
  return {
    ...(sentMs !== undefined && { sentMs: Math.round(sentMs - arrivedMs) }),
    ...(headMs !== undefined && { headMs: Math.round(headMs - arrivedMs) }),
    ...(firstContentMs !== undefined && { firstContentMs: Math.round(firstContentMs - arrivedMs) }),
  };
}

/**
 * The rest of the answer until the provider call ends or `settle_ms` has passed. `billsRest`: whether the provider may generate on after its
 * connection is closed.
 */
export async function outcomeOf(attempt: RunningAttempt, billsRest: boolean): Promise<RemainderOutcome> {
  const { work, limit, committed, call } = attempt;
  let answer: Answer | EmbeddingAnswer | undefined;
  let refused = false;
  let counted: Usage | undefined;
  try {
    answer = (await work) ?? undefined;
  } catch (reason) {
    const failure = Failure.from(reason);
    refused = failure.refused && !committed && attempt.unseen === undefined;
    counted = failure.usage;
  }
  const { unseen } = attempt;
  const usage = answer?.usage ?? unseen?.usage ?? counted;
  return {
    usage,
    refused,
    elapsedMs: limit.workEndedMs - attempt.startedMs,
    mayBillRest: (limit.signal.aborted || call.progress!.isCut === true) && billsRest,
    unseen: unseen?.size ?? (answer !== undefined && "choices" in answer ? sizeOfChoices(answer.choices) : undefined),
  };
}
