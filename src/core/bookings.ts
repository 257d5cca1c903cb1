import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { type Capped, costOf, dearestCost, dearestTokens, mostTokens, type MostTokens, type Sending } from "./cost.ts";
import { boundedUses, completeCounts } from "./fees.ts";
import { NO_TOKENS, type TokenCounts, toTokenCounts } from "./ledger.ts";
import type { CostedUsage } from "./provider.ts";
import type { RemainderOutcome, UncountedAttempt } from "./router.ts";
import {
  type AnswerSize,
  estimatePictures,
  estimateTokens,
  NOTHING_RECEIVED,
  type PromptSize,
} from "./token-estimate.ts";

/** What is known of the end of an attempt that may be billed as a whole. */
export const NOT_STOPPED = { progress: { unsent: false }, mayBillRest: false, unseen: undefined } as const;

/** Tokens and cost booked for one attempt. */
export interface Booking {
  readonly tokens: TokenCounts;
  readonly costMicroUsd: number;
  /** Part of the cost: of attempts with the account's own credential. */
  readonly ownCostMicroUsd: number;
  readonly estimated: boolean;
}

/** An attempt without a token count. */
interface UncountedFacts {
  readonly request: Capped;
  readonly prompt: PromptSize;
  readonly hasBudget: boolean;
  /** Size of the part of its answer that core received. */
  readonly seen: AnswerSize;
  /** What the provider sent after the attempt had ended; undefined when the connection was closed at once. */
  readonly outcome: RemainderOutcome | undefined;
}

/**
 * What a provider may bill for an attempt: its own count if that came in time, nothing if it refused the request. Otherwise an
 * estimate. The prompt is estimated by its size (under a budget: its upper bound; with documents or searches: the context
 * window). The answer has as many tokens as the model can generate in the elapsed time (under a budget all, if the provider may not
 * have noticed the end), at most those allowed by the request, and at least those received. The kinds of these tokens are not known, so
 * all have the price of the dearest kind.
 */
export function bookUncounted(
  {
    model,
    sent,
    progress,
    ...attempt
  }: Pick<UncountedAttempt, "model" | "sent" | "progress" | "elapsedMs" | "mayBillRest" | "unseen" | "usage">,
  { request, prompt, hasBudget, seen, outcome }: UncountedFacts,
): Booking {
  const { elapsedMs, mayBillRest, unseen: later } = outcome ?? attempt;
  const answer = joinSizes(seen, later ?? NOTHING_RECEIVED);
  const usage = outcome?.usage ?? attempt.usage;
  if (usage !== undefined && isCount(usage, answer)) return bookUsage(usage, answer, { model, sent });
  if (outcome?.refused === true || progress.unsent) return toBooking(NO_TOKENS, 0, { model, estimated: false });
  const most = mostTokens(request, { prompt, sent, model });
  const received = receivedTokens(answer, { most, sent, hasBudget });
  // Rejected tokens of a predicted answer are billed, and need no time.
  const each = Math.ceil((elapsedMs / 1000) * model.maxTokensPerSecond) + prompt.predictedBytes;
  // A caller with a budget could let a provider generate whole answers, again and again, and leave each time.
  const generated = hasBudget && mayBillRest ? Infinity : each * (request.choiceCount ?? 1);
  const booked = {
    prompt: promptTokens(most.prompt, { prompt, hasBudget, sent, model }),
    completion: Math.max(received.completion, Math.min(generated, most.completion)),
  };
  const sending = { prompt, sent, model };
  const costMicroUsd = dearestCost(booked, sending) ?? dearestTokens(booked, sending) ?? 0;
  return toBooking({ ...NO_TOKENS, ...booked }, costMicroUsd, { model, estimated: true });
}

/** Tokens of a prompt that the provider did not count: an estimate, at most `most`. */
function promptTokens(
  most: number,
  { prompt, hasBudget, sent, model }: Sending & Pick<UncountedFacts, "hasBudget">,
): number {
  // Only the provider knows how many tokens a document or a search adds to the prompt. A caller with a budget could send text
  // of more tokens than the estimate, again and again.
  const isEstimable = !hasBudget && !prompt.unbounded && sent.unbounded !== "search";
  if (isEstimable) return Math.min(estimateTokens(prompt), most);
  // An assumed context window (`isWindowAssumed`) is no upper bound, so it serves only where no budget could be overrun.
  return hasBudget ? most : Math.min(most, model.upstream.contextWindow);
}

/** The size of an answer in two pieces. */
function joinSizes(one: AnswerSize, other: AnswerSize): AnswerSize {
  return {
    textTokens: one.textTokens + other.textTokens,
    refusalTokens: one.refusalTokens + other.refusalTokens,
    pictures: one.pictures + other.pictures,
    picturesBegun: one.picturesBegun + other.picturesBegun,
    hasSpeech: one.hasSpeech || other.hasSpeech,
  };
}

/**
 * Tokens of the received part of an answer: its text, at most as much as the request allows, and all pictures. A picture of
 * which only a preview came is billed too, and a preview and its finished picture count once. Under a budget each picture has
 * its largest size, because a caller could leave before the token count of large pictures, again and again.
 */
function receivedTokens(
  { textTokens, pictures, picturesBegun }: AnswerSize,
  { most, sent, hasBudget }: { readonly most: MostTokens } & Pick<Sending, "sent"> & Pick<UncountedFacts, "hasBudget">,
): Pick<TokenCounts, "completion" | "image"> {
  const image = estimatePictures(Math.max(pictures, picturesBegun), hasBudget ? sent.pictureTokens : undefined);
  return { completion: Math.min(Math.ceil(textTokens), most.text) + image, image };
}

/** Booking of a complete answer without a count: the received tokens. */
export function bookSeen(
  seen: AnswerSize,
  { request, hasBudget, ...sending }: Sending & Pick<UncountedFacts, "request" | "hasBudget">,
): Booking {
  const most = mostTokens(request, sending);
  const prompt = promptTokens(most.prompt, { ...sending, hasBudget });
  const received = receivedTokens(seen, { most, sent: sending.sent, hasBudget });
  return book({ ...NO_TOKENS, prompt, ...received, ...boundedUses(sending) }, sending, { estimated: true });
}

/**
 * Booking of a provider's count. `completeCounts` completes `usage` in place, so the caller receives the same counts. Some servers
 * count pictures and speech, whose tokens may cost several times as much, only in the sum of the answer: then each picture is booked as
 * the largest, and an answer with speech as speech. It costs no less than the provider says.
 */
export function bookUsage(
  usage: CostedUsage,
  { pictures, hasSpeech }: AnswerSize,
  sending: Omit<Sending, "prompt">,
): Booking {
  completeCounts(usage, sending);
  const counts = toTokenCounts(usage);
  const { statedMicroUsd } = usage;
  const lacksPictures = pictures > 0 && counts.image === 0;
  const lacksSpeech = hasSpeech && (counts.completionAudio ?? 0) === 0;
  if (!lacksPictures && !lacksSpeech) return book(counts, sending, { estimated: false, statedMicroUsd });
  const made = lacksPictures ? estimatePictures(pictures, sending.sent.pictureTokens) : counts.image;
  const image = Math.min(made, counts.completion);
  const spoken = lacksSpeech ? counts.completion - image : counts.completionAudio;
  return book({ ...counts, image, completionAudio: spoken }, sending, { estimated: true, statedMicroUsd });
}

/** Prices the tokens and fees; 0 for a model without a price. */
function book(
  tokens: TokenCounts,
  { model, sent }: Omit<Sending, "prompt">,
  {
    estimated,
    statedMicroUsd = 0,
  }: Pick<Booking, "estimated"> & { readonly statedMicroUsd?: CostedUsage["statedMicroUsd"] },
): Booking {
  if (model.price === undefined) return toBooking(tokens, 0, { model, estimated });
  const costMicroUsd = costOf(tokens, model.price, sent);
  // The host that OpenRouter chose may be dearer than the price that is known here, and bill units that are not counted.
  const most = model.statesCost === true ? Math.max(costMicroUsd, statedMicroUsd) : costMicroUsd;
  return toBooking(tokens, most, { model, estimated });
}

export function toBooking(
  tokens: TokenCounts,
  costMicroUsd: number,
  { model, estimated }: Pick<Sending, "model"> & Pick<Booking, "estimated">,
): Booking {
  return { tokens, costMicroUsd, ownCostMicroUsd: model.ownCredential === undefined ? 0 : costMicroUsd, estimated };
}

/** Whether a count has tokens of both kinds, so that it is one whatever the answer: measuring 60 MiB would take tens of milliseconds. */
export function isWhole(usage: Usage | undefined): boolean {
  return usage !== undefined && usage.inputTokens > 0 && usage.outputTokens > 0;
}

/**
 * Whether a provider has counted. Some send zeros, or only one kind of tokens: each prompt has a token, and so has an answer with
 * text, pictures or speech. A refusal may be in the gateway's words, as that of a prompt which the provider blocked.
 */
export function isCount(usage: Usage, { textTokens, refusalTokens, pictures, hasSpeech }: AnswerSize): boolean {
  const isEmpty = textTokens === refusalTokens && pictures === 0 && !hasSpeech;
  return usage.inputTokens > 0 && (usage.outputTokens > 0 || isEmpty);
}

/** Sum of bookings. */
export function sumOf(bookings: readonly Booking[]): Booking {
  const [only] = bookings;
  if (only !== undefined && bookings.length === 1) return only;
  const tokens: { -readonly [K in keyof TokenCounts]: TokenCounts[K] } = { ...NO_TOKENS };
  let costMicroUsd = 0;
  let ownCostMicroUsd = 0;
  let estimated = false;
  for (const booking of bookings) {
    const { unknown, ...counts } = booking.tokens;
    for (const [kind, count = 0] of Object.entries(counts) as [keyof typeof counts, number?][])
      tokens[kind] = (tokens[kind] ?? 0) + count;
    if (unknown !== undefined) tokens.unknown = [...new Set([...(tokens.unknown ?? []), ...unknown])];
    costMicroUsd += booking.costMicroUsd;
    ownCostMicroUsd += booking.ownCostMicroUsd;
    estimated ||= booking.estimated;
  }
  return { tokens, costMicroUsd, ownCostMicroUsd, estimated };
}
