import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { toMicroUsd } from "./cost.ts";
import type { Model } from "./model.ts";
import type { SentSize } from "./provider.ts";
import { boundTokens, estimateTokens, type PromptSize } from "./token-estimate.ts";

/** What is reserved for a request before it is sent. */
export interface WorstCase {
  /** For token rates: about what is in the prompt, and all that the answer is expected to have at most. */
  readonly tokens: number;
  /** For budgets, in micro-USD: what one attempt cannot cost more than. Undefined when a model of the plan has no price. */
  readonly costMicroUsd: number | undefined;
}

/** A request as core knows it, whose messages may have been emptied. */
export type Capped = Pick<CompletionRequest, "maxTokens" | "n">;

/**
 * The worst case over all models that may answer. `sent` is the primary's; what a fallback is really sent is measured, and
 * reserved where it is more, when it comes to that.
 */
export function worstCase(
  request: Capped,
  { prompt, sent }: { readonly prompt: PromptSize; readonly sent: SentSize },
  candidates: readonly Model[],
): WorstCase {
  const choices = request.n ?? 1;
  const expected = Math.max(
    ...candidates.map(({ upstream }) =>
      Math.min(request.maxTokens ?? upstream.defaultMaxTokens, upstream.maxOutputTokens),
    ),
  );
  return {
    tokens: estimateTokens(prompt) + expected * choices,
    costMicroUsd: dearest(candidates.map((model) => boundCost(request, { prompt, sent, model }))),
  };
}

/** One attempt: what is sent to which model. */
export interface Sending {
  readonly prompt: PromptSize;
  readonly sent: SentSize;
  readonly model: Model;
}

/** Tokens of one attempt. */
export interface AttemptTokens {
  readonly prompt: number;
  readonly completion: number;
}

/** More tokens than an attempt can come to. */
export function mostTokens({ n }: Capped, { prompt, sent, model }: Sending): AttemptTokens {
  const { contextWindow, maxOutputTokens } = model.upstream;
  return {
    // What does not fit into its context window is refused by the provider, and costs nothing.
    prompt: sent.searches ? contextWindow : Math.min(boundTokens(prompt, sent.textBytes), contextWindow),
    completion: Math.min(sent.maxTokens ?? maxOutputTokens, maxOutputTokens) * (n ?? 1),
  };
}

/** The most that an attempt can cost, whatever kinds its tokens are. Undefined without a price. */
export function boundCost(request: Capped, sending: Sending): number | undefined {
  const { price } = sending.model;
  if (price === undefined) return undefined;
  const { priceFactor, cacheWrite } = sending.sent;
  const { mediaBytes, unbounded } = sending.prompt;
  const most = mostTokens(request, sending);
  const input = Math.max(
    price.input,
    price.cachedInput,
    cacheWrite === "none" ? 0 : Math.max(price.cacheWrite, price.cacheWriteHour),
    mediaBytes > 0 || unbounded ? price.audioInput : 0,
  );
  const output = Math.max(price.output, price.image, price.audioOutput);
  return toMicroUsd(most.prompt * input + most.completion * output, priceFactor);
}

function dearest(costs: readonly (number | undefined)[]): number | undefined {
  return costs.some((cost) => cost === undefined) ? undefined : Math.max(...(costs as readonly number[]));
}
