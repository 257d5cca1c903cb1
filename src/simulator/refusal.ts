/** What makes a refusal more precise than its status and message; each dialect has its own place for it. */
export interface RefusalDetail {
  /** How long the caller is asked to wait: a header in two dialects, a `RetryInfo` in Gemini's. */
  readonly retryAfterSeconds?: number;
  /** The machine-readable word beside the status, such as `context_length_exceeded` or `API_KEY_INVALID`. */
  readonly code?: string;
  /** The offending request field, in the dialect's own spelling. */
  readonly field?: string;
}

/** A request that the simulated provider does not serve. Thrown anywhere, encoded by the dialect that was spoken. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  /** HTTP status. */
  readonly status: number;
  readonly detail: RefusalDetail;

  constructor(status: number, message: string, detail: RefusalDetail = {}) {
    super(message);
    this.status = status;
    this.detail = detail;
  }
}
