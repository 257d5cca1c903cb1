import type { FailureCode } from "../../../src/core/failure.ts";
import type { Mode } from "../../../src/core/router.ts";
import type { Act } from "../../support/scripted-upstream.ts";
import type { Ask } from "./ask.ts";

/** The models that scenarios speak of; `world.ts` says what they are. */
export type ModelName = "alpha" | "beta" | "local" | "painter" | "gone";

/** The keys that scenarios are called with; `world.ts` makes them. */
export type KeyName =
  | "any"
  | "alpha only"
  | "chat only"
  | "expired"
  | "revoked"
  | "unknown"
  | "misshapen"
  | "another scheme"
  | "none";

export type EntranceName = "http" | "grpc";

/** One row of the table: what is asked, what the upstreams do, and what everybody has to see of it. */
export interface Scenario {
  /** A sentence. */
  readonly name: string;
  /** The request. Default: `alpha` is told hello. */
  readonly ask?: Ask;
  /** The entrances that have such a request. Default: both. */
  readonly at?: EntranceName;
  /** Default: both. */
  readonly mode?: Mode;
  /** What HTTP sends besides, or instead of, the request. */
  readonly http?: {
    /** Laid over the JSON of the request; undefined takes a field away. */
    readonly fields?: Readonly<Record<string, unknown>>;
    /** In place of the JSON. */
    readonly body?: string | Buffer;
    readonly headers?: Readonly<Record<string, string>>;
  };
  /** What gRPC sends in place of the request. */
  readonly grpcBytes?: Buffer;
  /** In place of the entrance's own path for completions. */
  readonly path?: string;
  /** Default: `any`. */
  readonly key?: KeyName;
  /** What each upstream model does with its calls, the last act again and again. */
  readonly upstream?: Partial<Record<ModelName, readonly Act[]>>;
  /** Laid over the configuration of models. */
  readonly models?: Partial<Record<ModelName, object>>;
  /** What the caller is willing to wait. */
  readonly deadlineMs?: number;
  /** When the caller leaves: while its request is sent, once so many upstream calls came, or after the first content. */
  readonly leaves?: "while sending" | "in the first call" | "in the second call" | "after content" | "after the end";
  /** The gateway gives up its calls, as at the end of a drain: once so many upstream calls came, or after content. */
  readonly stops?: "in the first call" | "after content";
  /** The same request, sent so many times before; then its primary's breaker is waited for. */
  readonly before?: { readonly times: number; readonly breaker: "open" | "half_open" | "closed" };
  readonly expected: Expected;
}

/** What has to be seen. */
export type Expected = ExpectedAnswer | ExpectedFailure;

interface ExpectedOutcome {
  /** `model outcome status` of each attempt. Other upstream calls than these must not be made. */
  readonly attempts?: readonly string[];
  /** What the breaker of `alpha` is afterwards. */
  readonly breaker?: "open" | "half_open" | "closed";
  /** HTTP: the gateway closes the connection after the reply. */
  readonly closesConnection?: true;
}

export interface ExpectedAnswer extends ExpectedOutcome {
  readonly answer: {
    /** Default: `alpha`. */
    readonly model?: ModelName;
    /** Default: `Hello.` */
    readonly text?: string;
    /** Default: `["stop"]`. */
    readonly finishReasons?: readonly string[];
    readonly pictures?: readonly string[];
    /** Default: what scripted answers count. */
    readonly usage?: string | undefined;
    readonly omitted?: readonly string[];
    readonly clamped?: readonly string[];
  };
  /** Default: the answer's model alone. */
  readonly attempts?: readonly string[];
}

export interface ExpectedFailure extends ExpectedOutcome {
  /** `cancelled` is seen in the log alone. */
  readonly failure: FailureCode;
  /** In place of the code's own. */
  readonly detail?: string;
  readonly param?: string;
  readonly message?: RegExp;
  /** What came before it. */
  readonly after?: string;
  /** Exactly so many seconds; else any from 1 to 60 where there must be some. */
  readonly retryAfterS?: number;
  /** Refused before it was taken for a completion: no record, but a refusal in the log. */
  readonly refused?: true;
  /** gRPC's own library answered, which knows nothing of details and leaves no trace. */
  readonly byLibrary?: true;
}
