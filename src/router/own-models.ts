import { BoundedMap } from "../core/bounded-map.ts";
import type { Model } from "../core/model.ts";
import type { AccountRouting } from "../core/principal.ts";
import { isRoute, type Route } from "../core/route.ts";

/** Accounts whose variants of a model or route are kept; the variants of other accounts are created again. */
const MAX_ACCOUNTS = 1_000;

/** An account with its own credentials. */
interface Owner {
  readonly accountId: string;
  readonly credentials: AccountRouting["credentials"];
}

/**
 * Models and routes with an account's own credentials in place of the configured ones. Returns the same object until the credential
 * changes, because other parts keep their knowledge of it by identity.
 */
export class OwnModels {
  readonly #models = new WeakMap<Model, BoundedMap<string, Model>>();
  readonly #routes = new WeakMap<Route, BoundedMap<string, Route>>();

  /** The variant for an account; `found` itself when the account has no credential for it. */
  of(found: Model | Route, owner: Owner): Model | Route {
    return isRoute(found) ? this.#routeOf(found, owner) : this.#modelOf(found, owner);
  }

  #modelOf(model: Model, { accountId, credentials }: Owner): Model {
    const credential = credentials.get(model.providerName);
    if (credential === undefined || model.providerOf === undefined) return model;
    const known = ofAccounts(this.#models, model);
    const own = known.get(accountId);
    if (own?.ownCredential === credential.id) return own;
    const made = { ...model, ownCredential: credential.id, provider: model.providerOf(accountId, credential) };
    known.set(accountId, made);
    return made;
  }

  #routeOf(route: Route, owner: Owner): Route {
    const models = route.targets.map(({ model }) => this.#modelOf(model, owner));
    const hasModels = ({ targets }: Route): boolean => targets.every(({ model }, index) => model === models[index]);
    if (hasModels(route)) return route;
    const known = ofAccounts(this.#routes, route);
    const own = known.get(owner.accountId);
    if (own !== undefined && hasModels(own)) return own;
    const targets = route.targets.map((target, index) => ({ ...target, model: models[index]! }));
    const made = { ...route, targets };
    known.set(owner.accountId, made);
    return made;
  }
}

function ofAccounts<T extends object>(all: WeakMap<T, BoundedMap<string, T>>, one: T): BoundedMap<string, T> {
  let known = all.get(one);
  if (known === undefined) all.set(one, (known = new BoundedMap(MAX_ACCOUNTS)));
  return known;
}
