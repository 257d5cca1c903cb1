import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { costOfTokens } from "./cost.ts";
import type { Model } from "./model.ts";
import { boundTokens, estimateTokens, type PromptSize } from "./token-estimate.ts";

/** What is reserved for a request before it is sent. */
export interface WorstCase {
  /** For token rates: about what is in the prompt, and all that the answer is expected to have at most. */
  readonly tokens: number;
  /** For budgets, in micro-USD: what it cannot cost more than. Undefined when a model of the plan has no price. */
  readonly costMicroUsd: number | undefined;
}

/** The worst case over all models that may answer. */
export function worstCase(request: CompletionRequest, prompt: PromptSize, candidates: readonly Model[]): WorstCase {
  const choices = request.n ?? 1;
  const expected = Math.max(
    ...candidates.map(({ upstream }) =>
      Math.min(request.maxTokens ?? upstream.defaultMaxTokens, upstream.maxOutputTokens),
    ),
  );
  return {
    tokens: estimateTokens(prompt) + expected * choices,
    costMicroUsd: dearest(candidates.map((model) => boundCost(request, prompt, model))),
  };
}

/** More tokens than the request can come to with this model. */
export function mostTokens(
  { maxTokens, n }: CompletionRequest,
  prompt: PromptSize,
  { upstream: { contextWindow, maxOutputTokens } }: Model,
): { readonly prompt: number; readonly completion: number } {
  return {
    // What does not fit into its context window is refused by the provider, and costs nothing.
    prompt: Math.min(boundTokens(prompt), contextWindow),
    completion: Math.min(maxTokens ?? maxOutputTokens, maxOutputTokens) * (n ?? 1),
  };
}

function boundCost(request: CompletionRequest, prompt: PromptSize, model: Model): number | undefined {
  const { price } = model;
  if (price === undefined) return undefined;
  const most = mostTokens(request, prompt, model);
  return costOfTokens([
    [most.prompt, Math.max(price.input, price.cachedInput)],
    [most.completion, Math.max(price.output, price.image)],
  ]);
}

function dearest(costs: readonly (number | undefined)[]): number | undefined {
  return costs.some((cost) => cost === undefined) ? undefined : Math.max(...(costs as readonly number[]));
}
