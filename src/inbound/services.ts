import type { KeyPrincipal } from "../access/principal.ts";
import type { AdmissionControl } from "../admission/admission-control.ts";
import type { Clock } from "../core/clock.ts";
import type { Completions } from "../core/completions.ts";
import type { Failure } from "../core/failure.ts";
import type { Entrance } from "../core/ledger.ts";
import type { LimitFacts } from "../core/limiter.ts";
import type { Models } from "../core/models.ts";
import type { Principal } from "../core/principal.ts";
import type { Calls } from "./calls.ts";
import type { Connections } from "./connections.ts";

/** The caller of an entrance, as `authenticate` finds it. */
export type { KeyPrincipal };

/** What every entrance stands on. */
export interface EdgeServices {
  readonly completions: Completions;
  readonly models: Models;
  /** From an `authorization` header's value to the caller. Throws `unauthenticated`, or `overloaded` when keys cannot be looked up. */
  readonly authenticate: (authorization: string | undefined) => Promise<KeyPrincipal>;
  /** A caller's limits as they were last known: for answers to requests that were not counted. */
  readonly limitsOf: (principal: Principal) => LimitFacts;
  /** Throws `rate_limited` for a key whose request rate is used up. Asked before anything of a completion is read. */
  readonly requireRequestRate: (principal: Principal) => void;
  readonly calls: Calls;
  /** Asked before anything of a completion is read. */
  readonly admission: AdmissionControl;
  /** Counts the connections of every listener. */
  readonly connections: Connections;
  readonly clock: Clock;
  /** Is told of requests that were refused before they became completions, for logs, metrics and rates. */
  readonly refused: (refusal: Refusal) => void;
}

/** A request that did not become a completion. */
export interface Refusal {
  readonly entrance: Entrance;
  readonly requestId: string;
  /** The path or the method's full name, cut to a sane length. */
  readonly target: string;
  readonly failure: Failure;
  /** Who asked for a completion, where that was known already. */
  readonly principal?: Principal;
}
