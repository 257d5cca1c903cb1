import type { KeyPrincipal } from "../access/principal.ts";
import type { AdmissionControl } from "../admission/admission-control.ts";
import type { Clock } from "../core/clock.ts";
import type { Completions } from "../core/completions.ts";
import type { Embedder } from "../core/embeddings.ts";
import type { Failure } from "../core/failure.ts";
import type { Entrance } from "../core/ledger.ts";
import type { KeptResponses } from "../core/kept-responses.ts";
import type { LimitFacts } from "../core/limiter.ts";
import type { Models } from "../core/models.ts";
import type { Principal } from "../core/principal.ts";
import type { Traces } from "../core/trace.ts";
import type { ClientCertificate } from "../net/tls-entrance.ts";
import type { Calls } from "./calls.ts";
import type { Connections } from "./connections.ts";

/** The authenticated caller. */
export type { KeyPrincipal };

/** Credentials that a caller presents. */
export interface Credentials {
  /** The `authorization` header. */
  readonly authorization: string | undefined;
  /** The verified certificate of the connection's client. */
  readonly certificate: ClientCertificate | undefined;
}

/** Services that every inbound protocol uses. */
export interface EdgeServices {
  readonly completions: Completions;
  readonly embedder: Embedder;
  readonly models: Models;
  /** Answers that are kept; undefined where none are. */
  readonly responses?: KeptResponses | undefined;
  /** Whether `completions` needs requests as their callers wrote them (`Call.inFormat`). Default: no. */
  readonly forwards?: boolean;
  /** Throws `unauthenticated`, or `overloaded` when keys cannot be looked up. */
  readonly authenticate: (credentials: Credentials) => Promise<KeyPrincipal>;
  /** Last known limits of a caller, for answers to requests that were not counted. */
  readonly limitsOf: (principal: Principal) => LimitFacts;
  /** Throws `rate_limited` for a key whose request rate is exhausted. Called before a body is read. */
  readonly requireRequestRate: (principal: Principal) => void;
  readonly calls: Calls;
  /** Called before a body is read. */
  readonly admission: AdmissionControl;
  /** Counts the connections of every listener. */
  readonly connections: Connections;
  readonly clock: Clock;
  /** Undefined where nothing is traced. */
  readonly traces?: Traces | undefined;
  /** Receives requests that were refused before they became completions, for logs, metrics and rates. */
  readonly refused: (refusal: Refusal) => void;
}

/** A refused request that did not become a completion. */
export interface Refusal {
  readonly entrance: Entrance;
  readonly requestId: string;
  /** Path, or full name of the method, shortened. */
  readonly target: string;
  readonly failure: Failure;
  /** The caller of a completion, if authenticated already. */
  readonly principal?: Principal;
}
