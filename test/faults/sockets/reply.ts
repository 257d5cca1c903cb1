/** What a caller was told when its completion failed, in the words of its entrance. */
export interface ToldFailure {
  /** HTTP: the status, or undefined in the middle of a stream. */
  readonly http?: number | undefined;
  readonly type?: string | undefined;
  readonly code?: string | null | undefined;
  /** gRPC and Connect: the status and the reason in its details. */
  readonly grpc?: number | undefined;
  readonly reason?: string | undefined;
  readonly message: string;
}

/** One completion as its caller saw it. */
export interface Reply {
  /**
   * `complete` and `failed` as the entrance says them; `left` by the caller's own doing, its own clock's too; `broken`
   * when the connection ended without a word, which nobody may see.
   */
  readonly end: "complete" | "failed" | "left" | "broken";
  readonly text: string;
  /** The model that has answered; undefined when nobody said. */
  readonly model?: string | undefined;
  readonly usage?: { readonly prompt: number; readonly completion: number } | undefined;
  readonly failure?: ToldFailure | undefined;
  /** What else was wrong with the form of the answer, in words. */
  readonly breaches: readonly string[];
}

/** A reply that its caller has not waited for. */
export function left(text: string): Reply {
  return { end: "left", text, breaches: [] };
}
