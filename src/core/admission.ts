import { type CompletionRequest, Modality } from "../../gen/parley/v1/completion_pb.js";
import { Failure, type FieldViolation, invalidField } from "./failure.ts";
import { makes, type Model, modelNotFound } from "./model.ts";
import type { Capability, Principal } from "./principal.ts";
import type { Mode, Plan, Router } from "./router.ts";
import { validate } from "./validate.ts";

/** Throws `permission_denied`, naming what is missing. */
export type Permit = (
  principal: Principal,
  needs: { readonly models: readonly string[]; readonly capability: Capability },
) => void;

/** Everything that can be wrong with a request before any upstream hears of it, in the documented order. */
export function admit(
  { router, permit }: { readonly router: Router; readonly permit: Permit },
  request: CompletionRequest,
  { principal, mode }: { readonly principal: Principal; readonly mode: Mode },
): Plan {
  if (request.model === "") throw invalidField("model", "is required");
  const primary = find(router, request.model, "model");
  const candidates = [primary];
  request.fallbackModels.forEach((id, index) => {
    const model = find(router, id, `fallback_models[${index}]`);
    if (!candidates.includes(model)) candidates.push(model);
  });
  const capability = request.modalities.includes(Modality.IMAGE) ? "images" : "chat";
  permit(principal, { models: candidates.map((model) => model.id), capability });
  validate(request, primary, () => router.list().flatMap((model) => (makes(model, Modality.IMAGE) ? [model.id] : [])));
  if (request.strict && request.unrecognizedFields.length > 0) throw unrecognized(request.unrecognizedFields);
  return router.plan(request, candidates, mode);
}

function find(router: Router, id: string, field: string): Model {
  const model = router.find(id);
  if (model === undefined) throw modelNotFound(id, field);
  return model;
}

function unrecognized(fields: readonly string[]): Failure {
  const violations: FieldViolation[] = fields.map((field) => ({
    field,
    description: "is not known here, and the request is strict",
  }));
  return new Failure("invalid_request", `${fields[0]}: is not known here, and the request is strict.`, { violations });
}
