import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { Failure, type FieldViolation } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { Translation } from "../core/provider.ts";
import type { Mode, Plan } from "../core/router.ts";

/** The candidates in order, with the primary's translation: what a request will try. */
export interface AttemptPlan extends Plan {
  readonly mode: Mode;
  readonly primary: Translation;
}

/**
 * Plans the attempts of a request: the primary (and its own retries) first, then each other candidate once, as listed.
 * A pure function. Throws `invalid_request` when the primary cannot take the request, or, when it is strict, would
 * have to leave out or clamp a field.
 */
export function planAttempts(request: CompletionRequest, candidates: readonly Model[], mode: Mode): AttemptPlan {
  const [first] = candidates;
  if (first === undefined) throw new RangeError("a plan needs at least one candidate");
  const primary = first.provider.translate(request, first.upstream, mode);
  const refusal = request.strict ? refuseLosses(first, primary) : undefined;
  if (refusal !== undefined) throw refusal;
  return { request, candidates, mode, primary };
}

/** The failure of a strict request whose translation would lose something; undefined when it loses nothing. */
export function refuseLosses(model: Model, { omitted, clamped }: Translation): Failure | undefined {
  const violations: FieldViolation[] = [
    ...omitted.map((field) => ({ field, description: `is not supported by ${model.id}, and the request is strict` })),
    ...clamped.map(({ field, to }) => ({
      field,
      description: `would be moved to ${to} for ${model.id}, and the request is strict`,
    })),
  ];
  const [first] = violations;
  return first && new Failure("invalid_request", `${first.field}: ${first.description}.`, { violations });
}
