import { costOf } from "./cost.ts";
import { NO_TOKENS, type TokenCounts, toTokenCounts } from "./ledger.ts";
import type { RestOutcome, UncountedAttempt } from "./router.ts";
import { type AnswerSize, estimateAnswerTokens, estimateTokens, type PromptSize } from "./token-estimate.ts";
import { type Capped, mostTokens, type Sending } from "./worst-case.ts";

/** What one attempt is booked at. */
export interface Booking {
  readonly tokens: TokenCounts;
  readonly costMicroUsd: number;
  readonly estimated: boolean;
}

/** An attempt that was not counted, and what is known of it now. */
export interface UncountedFacts {
  readonly request: Capped;
  readonly prompt: PromptSize;
  /** What went by of its answer, as far as core was given it. */
  readonly seen: AnswerSize;
  /** What the provider said after the attempt's end; undefined when it was not listened to. */
  readonly outcome: RestOutcome | undefined;
}

/**
 * What a provider may bill for an attempt: its own count where it came in time, nothing where it refused. Otherwise the
 * prompt by its size (with documents or searches: the context window), and of the answer all that the model can have generated in the time that it had, at least what was
 * seen of it and at most what the request allowed.
 */
export function bookUncounted(
  { model, sent, progress, ...attempt }: UncountedAttempt,
  { request, prompt, seen, outcome }: UncountedFacts,
): Booking {
  if (outcome?.usage !== undefined) return book(toTokenCounts(outcome.usage), { model, sent }, false);
  if (outcome?.refused === true || progress.unsent) return { tokens: NO_TOKENS, costMicroUsd: 0, estimated: false };
  const most = mostTokens(request, { prompt, sent, model });
  const { elapsedMs, unseen: later } = outcome ?? attempt;
  const said = estimateAnswerTokens({
    textTokens: seen.textTokens + (later?.textTokens ?? 0),
    pictures: seen.pictures + (later?.pictures ?? 0),
  });
  const generated = Math.ceil((elapsedMs / 1000) * model.maxTokensPerSecond) * (request.n ?? 1);
  const tokens = {
    ...NO_TOKENS,
    // How much a document of a few bytes or a search brings into the prompt only the provider knows.
    prompt: prompt.unbounded || sent.searches ? most.prompt : Math.min(estimateTokens(prompt), most.prompt),
    completion: Math.min(Math.max(said, generated), most.completion),
  };
  return book(tokens, { model, sent }, true);
}

/** An answer that came to its end without a count: what was seen of it, and no more than the request allowed. */
export function bookSeen(seen: AnswerSize, { request, ...sending }: Sending & { readonly request: Capped }): Booking {
  const most = mostTokens(request, sending);
  const prompt = Math.min(estimateTokens(sending.prompt), most.prompt);
  const completion = Math.min(estimateAnswerTokens(seen), most.completion);
  return book({ ...NO_TOKENS, prompt, completion }, sending, true);
}

/** These tokens at the model's prices; they cost nothing without a price. */
export function book(tokens: TokenCounts, { model, sent }: Omit<Sending, "prompt">, estimated: boolean): Booking {
  return { tokens, costMicroUsd: model.price === undefined ? 0 : costOf(tokens, model.price, sent), estimated };
}

const KEPT = Object.keys(NO_TOKENS) as (keyof typeof NO_TOKENS)[];

/** All of them together. */
export function sumOf(bookings: readonly Booking[]): Booking {
  const [only] = bookings;
  if (only !== undefined && bookings.length === 1) return only;
  const tokens = { ...NO_TOKENS };
  let costMicroUsd = 0;
  let estimated = false;
  for (const booking of bookings) {
    for (const kind of KEPT) tokens[kind] += booking.tokens[kind];
    costMicroUsd += booking.costMicroUsd;
    estimated ||= booking.estimated;
  }
  return { tokens, costMicroUsd, estimated };
}
