/** Error of a failed completion, as sent by its entrance. */
export interface ToldFailure {
  /** HTTP: the status, or undefined in the middle of a stream. */
  readonly http?: number | undefined;
  readonly type?: string | undefined;
  readonly code?: string | null | undefined;
  /** gRPC and Connect: status and reason from the details. */
  readonly grpc?: number | undefined;
  readonly reason?: string | undefined;
  readonly message: string;
}

/** One completion as its caller saw it. */
export interface Reply {
  /**
   * `complete` and `failed` as reported by the entrance; `left` after a cancellation or the client's own timeout;
   * `broken` when the connection ended without a result, which is an error.
   */
  readonly end: "complete" | "failed" | "left" | "broken";
  readonly text: string;
  /** The model that answered; undefined if it was not reported. */
  readonly model?: string | undefined;
  readonly usage?: { readonly prompt: number; readonly completion: number } | undefined;
  readonly failure?: ToldFailure | undefined;
  /** Other errors in the form of the response. */
  readonly breaches: readonly string[];
}

/** A reply before anything was received. */
export function left(text: string): Reply {
  return { end: "left", text, breaches: [] };
}
