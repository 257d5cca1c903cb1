import type { FailureCode, FailureDetail } from "../../../src/core/failure.ts";
import type { Mode } from "../../../src/core/router.ts";
import type { Act } from "../../support/scripted-upstream.ts";
import type { Ask, Embed } from "./ask.ts";

/** Models of scenarios; defined in `world.ts`. */
export type ModelName = "alpha" | "beta" | "local" | "painter" | "gone";

/** Keys of scenarios; created in `world.ts`. */
export type KeyName =
  | "any"
  | "alpha only"
  | "chat only"
  | "expired"
  | "revoked"
  | "unknown"
  | "misshapen"
  | "one request"
  | "one token"
  | "no money"
  | "another scheme"
  | "none";

type EntranceName = "http" | "grpc";

/** One row of the table: the request, the upstreams' behaviour, and the expected result. */
export interface Scenario {
  /** Test title. */
  readonly name: string;
  /** The same as the scenario of `alpha`, with a provider of another dialect. */
  readonly isRepeat?: boolean;
  /** The request. Default: says hello to `alpha`. */
  readonly ask?: Ask;
  /** Further fields of a request for embeddings. */
  readonly embed?: Embed;
  /** The only entrance of the scenario. Default: HTTP, in every format, and gRPC. */
  readonly at?: EntranceName;
  /** Default: both. */
  readonly mode?: Mode;
  /** Merged over the JSON of the HTTP request; undefined removes a field. In the common table only fields that no format has. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Additions or replacements of the HTTP request. */
  readonly http?: {
    /** Replaces the JSON. */
    readonly body?: string | Buffer;
    readonly headers?: Readonly<Record<string, string>>;
  };
  /** Replaces the gRPC request. */
  readonly grpcBytes?: Buffer;
  /** Asks at a path, or for a method, that is not served. */
  readonly isUnknownPath?: true;
  /** Default: `any`. */
  readonly key?: KeyName;
  /** Behaviour of each upstream model by call; the last one is repeated. */
  readonly upstream?: Partial<Record<ModelName, readonly Act[]>>;
  /** Merged over the configuration of models. */
  readonly models?: Partial<Record<ModelName, { readonly timeouts?: object; readonly capabilities?: object }>>;
  /** Deadline of the caller. */
  readonly deadlineMs?: number;
  /**
   * When the caller cancels: while sending the request, after a number of upstream calls, or after the first content.
   */
  readonly leaves?: "while sending" | "in the first call" | "in the second call" | "after content" | "after the end";
  /** The gateway aborts its calls, as at the end of a drain: after a number of upstream calls, or after content. */
  readonly stops?: "in the first call" | "after content";
  /** Sends the same request this many times before; then waits for this state of the primary's circuit breaker, if any is given. */
  readonly before?: { readonly times: number; readonly breaker?: "open" | "half_open" | "closed" };
  readonly expected: Expected;
}

/** The expected result. */
export type Expected = ExpectedAnswer | ExpectedFailure;

interface ExpectedOutcome {
  /** `model outcome status` of each attempt. There must be no other upstream calls. */
  readonly attempts?: readonly string[];
  /** State of the circuit breaker of `alpha` afterwards. */
  readonly breaker?: "open" | "half_open" | "closed";
  /** HTTP: the gateway closes the connection after the reply. */
  readonly closesConnection?: true;
}

export interface ExpectedAnswer extends ExpectedOutcome {
  readonly answer: {
    /** Default: `alpha`. */
    readonly model?: ModelName;
    /** Default: `Hello.` Of embeddings: what the vectors stand for. */
    readonly text?: string;
    /** Default: `["stop"]`; none of embeddings. */
    readonly finishReasons?: readonly string[];
    readonly pictures?: readonly string[];
    /** Default: usage of scripted answers. */
    readonly usage?: string | undefined;
    /** Tool calls, see `Reply.calls`. */
    readonly calls?: readonly string[];
    /** Fields by the contract's names. */
    readonly omitted?: readonly string[];
    /** `field from>to`, by the contract's names. */
    readonly clamped?: readonly string[];
  };
  /** Default: the model of the answer. */
  readonly attempts?: readonly string[];
}

export interface ExpectedFailure extends ExpectedOutcome {
  /** `cancelled` is visible only in the log. */
  readonly failure: FailureCode;
  /** Overrides that of the code. */
  readonly detail?: FailureDetail;
  /** The invalid field by the contract's name. */
  readonly param?: string;
  /** The invalid field by the format's own name. */
  readonly ownParam?: string;
  readonly message?: RegExp;
  /** Text before the failure. */
  readonly after?: string;
  /** The retry-after in seconds; otherwise from 1 to 60 where one is required. */
  readonly retryAfterS?: number;
  /** Refused before it counts as a completion: the log has a refusal. */
  readonly refused?: true;
  /** Response of gRPC's library, without details and log line. */
  readonly byLibrary?: true;
}
