/** A completion as its caller saw it, at either entrance. */
export interface Reply {
  /** The model that the reply names. */
  readonly model: string | undefined;
  /** The texts of all choices, joined. */
  readonly text: string;
  /** The pictures, in base64. */
  readonly pictures: readonly string[];
  /** One per choice that ended. */
  readonly finishReasons: readonly string[];
  /** `prompt+completion`. */
  readonly usage: string | undefined;
  readonly report: SeenReport | undefined;
  /** Response headers, or metadata. */
  readonly facts: Readonly<Record<string, string | undefined>>;
  /** Whether it has the mark of a complete reply: a JSON body, `[DONE]`, the status OK. */
  readonly complete: boolean;
  readonly failure: SeenFailure | undefined;
}

/** How the answer came about. Attempts are in short, see `inShort`. */
export interface SeenReport {
  readonly attempts: readonly string[];
  readonly omitted: readonly string[];
  /** `field from>to`. */
  readonly clamped: readonly string[];
}

/** A failure in the words of its entrance. */
export interface SeenFailure {
  /** HTTP: `status type`, where a stream that had begun has the status 200. gRPC: `STATUS reason`. */
  readonly status: string;
  /** `error.code`, `absent` without such a field. gRPC: `error_code` of the ErrorInfo. */
  readonly code: string | null;
  readonly message: string;
  readonly param: string | null;
  readonly attempts: readonly string[];
  readonly retryAfterS: number | undefined;
  /** Whether `x-should-retry` is false; over gRPC whether `grpc-retry-pushback-ms` is -1. */
  readonly final: boolean | undefined;
  /** `grpc-retry-pushback-ms`, over gRPC. */
  readonly pushbackMs?: number;
}

/** One call under way, from its caller's side. */
export interface RunningCall {
  /** Settles when the reply is over. Rejects when the connection broke. */
  readonly reply: Promise<Reply>;
  /** Whether content has arrived. */
  begun(): boolean;
  /** Whether the gateway has closed the connection. Always false where connections are shared. */
  closedByGateway(): boolean;
  /** The caller goes away, or has read everything. */
  leave(): void;
}

/** One attempt in a line: `model outcome status`. */
export function inShort(attempt: {
  readonly model: string;
  readonly outcome: string;
  readonly status: number | null | undefined;
}): string {
  const { model, outcome, status } = attempt;
  return `${model} ${outcome}${status == null ? "" : ` ${status}`}`;
}
