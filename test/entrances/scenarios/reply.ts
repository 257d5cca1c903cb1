/** A completion as its caller saw it, in any format and over gRPC. */
export interface Reply {
  /** The model in the reply. */
  readonly model: string | undefined;
  /** Texts of all choices, joined. */
  readonly text: string;
  /** Tool calls of a complete answer: the name and the arguments as JSON. */
  readonly calls: readonly string[];
  /** Images in base64. */
  readonly pictures: readonly string[];
  /** Finish reasons, one per finished choice. */
  readonly finishReasons: readonly string[];
  /** `prompt+completion`. */
  readonly usage: string | undefined;
  readonly report: SeenReport | undefined;
  /** Response headers or metadata. */
  readonly facts: Readonly<Record<string, string | undefined>>;
  /** Whether it is complete: a JSON body, the end of a stream as its format has it, or the status OK. */
  readonly complete: boolean;
  readonly failure: SeenFailure | undefined;
}

/** Routing facts. Attempts are formatted by `inShort`. */
export interface SeenReport {
  readonly attempts: readonly string[];
  readonly omitted: readonly string[];
  /** `field from>to`. */
  readonly clamped: readonly string[];
}

/** A failure as sent by its entrance. */
export interface SeenFailure {
  /** HTTP: the status, and the words that the format has for the failure; a stream that had begun has status 200. gRPC: `STATUS reason`. */
  readonly status: string;
  /** `error.code`, `absent` if the field is missing; null in a format without one. gRPC and Gemini: `error_code` of the ErrorInfo. */
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

/** One call in flight, from its caller's side. */
export interface RunningCall {
  /** Resolves when the reply is over. Rejects when the connection broke. */
  readonly reply: Promise<Reply>;
  /** Whether content has arrived. */
  begun(): boolean;
  /** Whether the gateway has closed the connection. Always false for shared connections. */
  closedByGateway(): boolean;
  /** Cancels the call, or releases it when it is over. */
  leave(): void;
}

/** Formats a tool call: its name, and its arguments, which must be JSON, without white space. */
export function callInShort(name: string, argumentsJson: string): string {
  return `${name} ${JSON.stringify(JSON.parse(argumentsJson))}`;
}

/** Formats an attempt: `model outcome status`. */
export function inShort(attempt: {
  readonly model: string;
  readonly outcome: string;
  readonly status: number | null | undefined;
}): string {
  const { model, outcome, status } = attempt;
  return `${model} ${outcome}${status == null ? "" : ` ${status}`}`;
}
