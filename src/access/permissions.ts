import { Failure } from "../core/failure.ts";
import { mayUse, type Needs, type Principal } from "../core/principal.ts";

/** Throws a `permission_denied` Failure that names the first model, or the capability, that the key lacks. */
export function permit(principal: Principal, { models, capability }: Needs): void {
  if (!principal.capabilities.has(capability)) {
    throw new Failure("permission_denied", `This API key lacks the capability "${capability}".`);
  }
  const refused = models.find((model) => !mayUse(principal, model));
  if (refused !== undefined) {
    throw new Failure("permission_denied", `This API key may not use the model "${refused}".`);
  }
}
