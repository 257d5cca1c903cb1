import type { Entrance } from "./ledger.ts";
import type { LimitFacts } from "./limiter.ts";
import type { Needs, Principal } from "./principal.ts";

/** Who asks for something, and what it is told of its limits. */
export interface Caller {
  readonly principal: Principal;
  /** Maybe the caller's own: not unique. */
  readonly requestId: string;
  /** Of a completion: its ID. Unique for ever, and never the caller's choice. */
  readonly completionId: string;
  /** Is told the limits as they are once the request has been counted, before there is any answer. */
  readonly admitted: (facts: LimitFacts) => void;
}

/** What an entrance knows of a call. */
export interface Call extends Caller {
  readonly entrance: Entrance;
  /** Aborts when the caller leaves, its deadline passes or the gateway stops: with a Failure as its reason. */
  readonly signal: AbortSignal;
  /** When the request arrived, by the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** When the caller's deadline passes, by the clock's `monotonic`; absent without one. `signal` keeps it. */
  readonly expiresMs?: number | undefined;
  /** How many gateways the request has come through before this one. Default: none. */
  readonly hops?: number | undefined;
  /** Is told what the completion needs of its key, which has it; absent where nothing ends the call when the key loses it. */
  readonly permitted?: ((needs: Needs) => void) | undefined;
}
