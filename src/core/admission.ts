import { type CompletionRequest, Modality } from "../../gen/parley/v1/completion_pb.js";
import type { Call } from "./call.ts";
import { Failure, type FieldViolation, invalidField } from "./failure.ts";
import { makes, type Model, modelNotFound } from "./model.ts";
import type { Limiter } from "./limiter.ts";
import { mayUse, type Needs, type Principal } from "./principal.ts";
import type { ProviderOption } from "./provider-options.ts";
import type { Mode, Plan, Router } from "./router.ts";
import { MAX_FALLBACKS, validate } from "./validate.ts";

/** Throws `permission_denied`, naming what is missing. */
export type Permit = (principal: Principal, needs: Needs) => void;

/** What admission asks. */
export interface AdmissionPorts {
  readonly router: Router;
  readonly permit: Permit;
  readonly limiter: Pick<Limiter, "hasBudget">;
}

const NO_OPTIONS: ReadonlySet<ProviderOption> = new Set();

/** Everything that can be wrong with a request before any upstream hears of it, in the documented order. */
export function admit(
  { router, permit, limiter }: AdmissionPorts,
  request: CompletionRequest,
  { call, mode }: { readonly call: Pick<Call, "principal" | "permitted">; readonly mode: Mode },
): Plan {
  if (request.model === "") throw invalidField("model", "is required");
  const primary = find(router, request.model, { field: "model", principal: call.principal });
  const candidates = [primary];
  // Of more, the request is refused, and what they are called does not matter.
  request.fallbackModels.slice(0, MAX_FALLBACKS).forEach((id, index) => {
    const model = find(router, id, { field: `fallback_models[${index}]`, principal: call.principal });
    if (!candidates.includes(model)) candidates.push(model);
  });
  const capability = request.modalities.includes(Modality.IMAGE) ? "images" : "chat";
  const needs: Needs = { models: candidates.map((model) => model.id), capability };
  permit(call.principal, needs);
  call.permitted?.(needs);
  validate(request, primary, () => router.list().flatMap((model) => (makes(model, Modality.IMAGE) ? [model.id] : [])));
  if (request.strict && request.unrecognizedFields.length > 0) throw unrecognized(request.unrecognizedFields);
  const capped = limiter.hasBudget(call.principal);
  const options = call.principal.options ?? (capped ? NO_OPTIONS : undefined);
  return router.plan(request, candidates, { mode, rules: { options, capped } });
}

function find(
  router: Router,
  id: string,
  { field, principal }: { readonly field: string; readonly principal: Principal },
): Model {
  const model = router.find(id);
  if (model !== undefined) return model;
  throw modelNotFound(id, { field, visible: router.list().filter((one) => mayUse(principal, one.id)) });
}

function unrecognized(fields: readonly string[]): Failure {
  const violations: FieldViolation[] = fields.map((field) => ({
    field,
    description: "is not known here, and the request is strict",
  }));
  return new Failure("invalid_request", `${fields[0]}: is not known here, and the request is strict.`, { violations });
}
