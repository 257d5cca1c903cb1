import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { boundFees, feesOf } from "./fees.ts";
import type { TokenCounts } from "./ledger.ts";
import type { Model, Price, TokenPrices } from "./model.ts";
import type { SentSize } from "./provider.ts";
import { boundTokens, estimatePictures, estimateTokens, type PromptSize } from "./token-estimate.ts";

/** Facts of a request that change the price of its tokens. */
export type Pricing = Pick<SentSize, "priceFactor" | "cacheWrite">;

/** Pricing of a request without a service tier and without cached prefixes. */
const PLAIN: Pricing = { priceFactor: 1, cacheWrite: "none" };

/**
 * Cost of a completion in micro-USD, rounded up: each kind of token at its price, and the fees. Cache writes whose
 * lifetime the provider does not state have the price of the longest requested lifetime. The length of the prompt selects the
 * tier of all prices. With whole price factors the arithmetic is in integers, exact below 2^53: nine million tokens at
 * 1,000 USD per million.
 */
export function costOf(tokens: TokenCounts, price: Price, pricing: Pricing = PLAIN): number {
  const prices = pricesFor(tokens.prompt, price);
  const images = Math.min(tokens.image, tokens.completion);
  const spoken = Math.min(tokens.completionAudio ?? 0, tokens.completion - images);
  const millionths =
    costOfPrompt(tokens, prices, pricing) +
    (tokens.completion - images - spoken) * prices.output +
    images * prices.imageOutput +
    spoken * prices.audioOutput;
  return toMicroUsd(millionths * pricing.priceFactor + feesOf(tokens, price.fees));
}

/** Cost in millionths of a micro-USD. Contradictory counts are cut in the order below, so that each token is charged once. */
function costOfPrompt(tokens: TokenCounts, prices: TokenPrices, { cacheWrite }: Pricing): number {
  const { prompt } = tokens;
  const cached = Math.min(tokens.cached, prompt);
  const cachedAudio = Math.min(tokens.cachedAudio ?? 0, cached);
  const cachedImages = Math.min(tokens.cachedImage ?? 0, cached - cachedAudio);
  const written = Math.min(tokens.cacheWrite ?? 0, prompt - cached);
  const writtenForAnHour = Math.min(tokens.cacheWriteHour ?? (cacheWrite === "hour" ? written : 0), written);
  const heard = Math.min(Math.max((tokens.promptAudio ?? 0) - cachedAudio, 0), prompt - cached - written);
  const seen = Math.min(Math.max((tokens.promptImage ?? 0) - cachedImages, 0), prompt - cached - written - heard);
  return (
    (prompt - cached - written - heard - seen) * prices.input +
    (cached - cachedAudio - cachedImages) * prices.cachedInput +
    cachedAudio * prices.cachedAudioInput +
    cachedImages * prices.cachedImageInput +
    (written - writtenForAnHour) * prices.cacheWrite +
    writtenForAnHour * prices.cacheWriteHour +
    heard * prices.audioInput +
    seen * prices.imageInput
  );
}

/** The prices of all tokens of a completion, by the length of its prompt. */
function pricesFor(promptTokens: number, price: Price): TokenPrices {
  return price.tiers?.findLast(({ abovePromptTokens }) => promptTokens > abovePromptTokens) ?? price;
}

/**
 * Converts tokens × price (millionths of a micro-USD) into micro-USD, rounded up. Otherwise a caller could send any number of calls
 * that cost a little less than what is rounded to the next one, and spend one and a half times a budget.
 */
function toMicroUsd(millionths: number): number {
  return Math.ceil(millionths / 1_000_000);
}

/** The reservation of a request, made before it is sent. */
interface WorstCase {
  /** For token rates: the estimated prompt tokens plus the largest expected answer. */
  readonly tokens: number;
  /** For budgets: upper bound of the cost of one attempt, in micro-USD. Undefined when a model of the plan has no price. */
  readonly costMicroUsd: number | undefined;
}

/** The fields of a request that bound its answer. They stay when the messages have been removed. */
export type Capped = Pick<CompletionRequest, "maxOutputTokens" | "choiceCount">;

/**
 * The worst case over all models of the plan. `sent` is the size for the primary; a fallback's own size is measured, and the
 * difference reserved, when the fallback is tried.
 */
export function worstCase(
  request: Capped,
  { prompt, sent }: { readonly prompt: PromptSize; readonly sent: SentSize },
  candidates: readonly Model[],
): WorstCase {
  const choices = request.choiceCount ?? 1;
  const expected = Math.max(
    ...candidates.map(({ upstream }) =>
      Math.min(request.maxOutputTokens ?? upstream.defaultMaxTokens, upstream.maxOutputTokens),
    ),
  );
  const costs = candidates.map((model, index) => {
    const sending = { prompt, sent, model };
    // The fees of a fallback's tools are known once the request is translated for it.
    return index === 0 ? boundCost(request, sending) : dearestTokens(mostTokens(request, sending), sending);
  });
  const pictures = sent.pictureTokens === undefined ? 0 : choices;
  return {
    tokens: estimateTokens(prompt) + expected * choices + estimatePictures(pictures),
    costMicroUsd: dearest(costs),
  };
}

/** One attempt: the model and the size of what is sent. */
export interface Sending {
  readonly prompt: PromptSize;
  readonly sent: SentSize;
  readonly model: Model;
}

/** Token bounds of one attempt. */
interface AttemptTokens {
  readonly prompt: number;
  readonly completion: number;
}

/** Token bounds of one attempt, and of a part of them. */
export interface MostTokens extends AttemptTokens {
  /** Part of `completion` without `SentSize.pictureTokens`. */
  readonly text: number;
}

/** Upper bounds of the tokens of an attempt. */
export function mostTokens({ choiceCount }: Capped, { prompt, sent, model }: Sending): MostTokens {
  const { maxOutputTokens } = model.upstream;
  const choices = choiceCount ?? 1;
  const text = (Math.min(sent.maxTokens ?? maxOutputTokens, maxOutputTokens) + prompt.predictedBytes) * choices;
  return {
    prompt: mostPromptTokens({ prompt, sent, model }),
    completion: text + (sent.pictureTokens ?? 0) * choices,
    text,
  };
}

/** Prompt tokens that are reserved when neither prompt nor context window has a known length: the longest windows of models. */
const LONGEST_PROMPT = 2_000_000;

/**
 * Upper bound of the prompt tokens. Providers refuse a prompt beyond the context window at no cost; such an input of
 * embeddings they cut or refuse.
 */
function mostPromptTokens({ prompt, sent, model }: Sending): number {
  const most = sent.unbounded === "no" ? boundTokens(prompt, sent.textBytes) : Infinity;
  if (model.isWindowAssumed !== true) return Math.min(most, model.upstream.contextWindow * prompt.windows);
  return most === Infinity ? Math.max(LONGEST_PROMPT, sent.textBytes) : most;
}

/**
 * Upper bound of the cost of an attempt, whatever the kinds of its tokens. Undefined without a price, or with tools that may cost any
 * amount.
 */
export function boundCost(request: Capped, sending: Sending): number | undefined {
  return dearestCost(mostTokens(request, sending), sending);
}

/**
 * Cost of an attempt with tokens whose kinds are not known: all of the dearest kind that it may have, and the most fees. Undefined
 * without a price, or with tools that may cost any amount.
 */
export function dearestCost(tokens: AttemptTokens, sending: Sending): number | undefined {
  const ofTokens = dearestTokens(tokens, sending);
  const fees = ofTokens === undefined ? undefined : boundFees(sending);
  return fees === undefined ? undefined : ofTokens! + Math.ceil(fees / 1_000_000);
}

/** The part of `dearestCost` that is for tokens. Undefined without a price. */
export function dearestTokens(tokens: AttemptTokens, { prompt, sent, model }: Sending): number | undefined {
  const { price } = model;
  if (price === undefined) return undefined;
  const costAt = (prices: TokenPrices): number => {
    const input = Math.max(
      prices.input,
      prices.cachedInput,
      sent.cacheWrite === "none" ? 0 : Math.max(prices.cacheWrite, prices.cacheWriteHour),
      prompt.mediaBytes > 0 || prompt.unbounded ? Math.max(prices.audioInput, prices.cachedAudioInput) : 0,
      prompt.pictures > 0 || prompt.unbounded ? Math.max(prices.imageInput, prices.cachedImageInput) : 0,
    );
    const output = Math.max(prices.output, prices.imageOutput, prices.audioOutput);
    return tokens.prompt * input + tokens.completion * output;
  };
  let most = costAt(price);
  for (const tier of price.tiers ?? []) if (tokens.prompt > tier.abovePromptTokens) most = Math.max(most, costAt(tier));
  // Rounded up, because a reservation of 0 would be granted on a spent budget.
  return Math.ceil((most * sent.priceFactor) / 1_000_000);
}

function dearest(costs: readonly (number | undefined)[]): number | undefined {
  return costs.some((cost) => cost === undefined) ? undefined : Math.max(...(costs as readonly number[]));
}
