import { Failure } from "../core/failure.ts";
import { type Capability, mayUse, type Principal } from "../core/principal.ts";

/** What a request needs: every model it names, the fallback models too, and the kind of completion. */
export interface Permission {
  readonly models: readonly string[];
  readonly capability: Capability;
}

/** Throws a `permission_denied` Failure that names the first model, or the capability, that the key lacks. */
export function permit(principal: Principal, { models, capability }: Permission): void {
  if (!principal.capabilities.has(capability)) {
    throw new Failure("permission_denied", `This API key lacks the capability "${capability}".`);
  }
  const refused = models.find((model) => !mayUse(principal, model));
  if (refused !== undefined) {
    throw new Failure("permission_denied", `This API key may not use the model "${refused}".`);
  }
}
