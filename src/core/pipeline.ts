import type { Reserved } from "./accounting.ts";
import type { Settling } from "./settling.ts";
import type { Call } from "./call.ts";
import type { Clock } from "./clock.ts";
import { type Capped, worstCase } from "./cost.ts";
import { boundFees, unboundedFees } from "./fees.ts";
import { Failure, type FieldViolation, invalidField } from "./failure.ts";
import type { Ledger, Recorder } from "./ledger.ts";
import type { Limiter } from "./limiter.ts";
import { adviseModels, type ListedModel, type Model, modelNotFound } from "./model.ts";
import { mayUse, type Needs, type Principal } from "./principal.ts";
import type { SentSize } from "./provider.ts";
import type { Route } from "./route.ts";
import type { Router } from "./router.ts";
import type { PromptSize } from "./token-estimate.ts";

/* Steps that completions and embeddings share, in the order find → permit → validate → plan → reserve → run → record. */

/** Throws `permission_denied` that names the missing permission. */
export type Permit = (principal: Principal, needs: Needs) => void;

/** Ports of core. */
export interface CorePorts {
  readonly router: Router;
  readonly permit: Permit;
  readonly limiter: Limiter;
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly clock: Clock;
}

/** Ports of core, with the completions that have ended for the caller but still wait for token counts. */
export interface PipelinePorts extends CorePorts {
  readonly settling: Settling;
}

/** Allowance after the deadline for recording the call, before its reservation expires. */
const SETTLING_MS = 60_000;

/** The model or route of a request's `field`. Throws `model_not_found`. */
export function findModel(
  router: Router,
  id: string,
  { field, principal }: { readonly field: string; readonly principal: Principal },
): Model | Route {
  const model = router.find(id, principal);
  if (model !== undefined) return model;
  throw modelNotFound(id, { field, visible: router.list().filter((one) => mayUse(principal, one.id)) });
}

/** Requires the permissions, and ends the call when its key loses one of them. Throws `permission_denied`. */
export function requirePermission(
  permit: Permit,
  { principal, permitted }: Pick<Call, "principal" | "permitted">,
  needs: Needs,
): void {
  permit(principal, needs);
  permitted?.(needs);
}

/** The failure of a request for a model with other output. `isAble`: selects the models that could serve the request. */
export function wrongModel(
  router: Router,
  { field, model, principal }: { readonly field: string; readonly model: ListedModel; readonly principal: Principal },
  { makes, isAble }: { readonly makes: string; readonly isAble: (model: ListedModel) => boolean },
): Failure {
  const able = router.list().flatMap((one) => (isAble(one) && mayUse(principal, one.id) ? [one.id] : []));
  return invalidField(field, `must be another model: ${model.id} does not make ${makes}${adviseModels(able)}`);
}

/** Throws `invalid_request` for a strict request with fields that the contract does not have. */
export function requireKnownFields(
  { strict }: { readonly strict: boolean },
  { unrecognized = [] }: Pick<Call, "unrecognized">,
): void {
  if (!strict || unrecognized.length === 0) return;
  const description = "is not known here, and the request is strict";
  const violations: FieldViolation[] = unrecognized.map((field) => ({ field, description }));
  throw new Failure("invalid_request", `${unrecognized[0]}: ${description}.`, { violations });
}

/** Charges the caller for the work of `admit`. A request that is not admitted counts against the request rate of its key. */
export function admitOrCount<P>(
  { limiter }: Pick<CorePorts, "limiter">,
  { principal, share }: Call,
  admit: () => P,
): P {
  try {
    return share === undefined ? admit() : share.work(admit);
  } catch (reason) {
    limiter.countRefused(principal, Failure.from(reason));
    throw reason;
  }
}

/**
 * Under a budget, requires that the provider's tools have a bound and a price for the first model. Throws `invalid_request`. The
 * tools of a fallback are checked when it is tried.
 */
export function requireBoundedFees(
  { limiter }: { readonly limiter: Pick<Limiter, "hasBudget"> },
  { candidates, sent, prompt }: Pick<Planned, "candidates" | "sent" | "prompt">,
  { principal }: Pick<Call, "principal">,
): void {
  const model = candidates[0]!;
  if (model.price === undefined || !limiter.hasBudget(principal)) return;
  if (boundFees({ model, sent, prompt }) === undefined) throw unboundedFees({ model, sent, prompt });
}

/** A planned request. */
export interface Planned {
  readonly request: Capped;
  readonly prompt: PromptSize;
  readonly candidates: readonly Model[];
  /** Size of the request that is sent to the first model. */
  readonly sent: SentSize;
}

/** Reserves the worst case of a plan. Throws what the limiter and the ledger throw. */
export async function reserve(
  { limiter, ledger }: Pick<CorePorts, "limiter" | "ledger">,
  { request, prompt, candidates, sent }: Planned,
  call: Call,
): Promise<Reserved> {
  ledger.admit();
  const { principal, completionId, attribution } = call;
  // The total time of the first candidate ends all attempts. The attempt in flight at that time then has its own `settleMs`.
  const settleMs = Math.max(...candidates.map(({ timeouts }) => timeouts.settleMs));
  const lastsMs = candidates[0]!.timeouts.totalMs + settleMs + SETTLING_MS;
  const { tokens, costMicroUsd } = worstCase(request, { prompt, sent }, candidates);
  const reservation = await limiter.reserve({ principal, attribution, completionId, lastsMs, tokens, costMicroUsd });
  call.admitted(reservation.facts);
  return { reservation, prompt, sent, costMicroUsd, hasBudget: limiter.hasBudget(principal) };
}
