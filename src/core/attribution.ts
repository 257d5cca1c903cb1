/** End user, session, agent and tags that the caller names for a request. Usage is reported by them, and stops apply to them. */
export interface Attribution {
  readonly endUser?: string | undefined;
  /** The session or conversation. */
  readonly session?: string | undefined;
  /** The program that calls. */
  readonly agent?: string | undefined;
  /** Without duplicates. Default: none. */
  readonly tags?: readonly string[] | undefined;
}

/** Limits of each end user and each session of a key. Undefined: not limited. */
export interface AttributionLimits {
  readonly endUserRequestsPerMinute?: number | undefined;
  /** Prompt and answer tokens together. */
  readonly endUserTokensPerMinute?: number | undefined;
  /** Per day or month in UTC, in micro-USD. */
  readonly endUserBudgetMicroUsd?: number | undefined;
  /** Default: a day. */
  readonly endUserBudgetPeriod?: "day" | "month" | undefined;
  /** Budget of the whole session, in micro-USD. */
  readonly sessionBudgetMicroUsd?: number | undefined;
  /** Whether requests that name no end user are refused. Default: they are served, without the limits of end users. */
  readonly requiresEndUser?: boolean | undefined;
}

/** Lengths of an end user, a session and an agent, and of a tag, in UTF-16 code units; longer ones are shortened. */
export const MAX_NAME_CHARS = 200;
export const MAX_TAG_CHARS = 128;
/** Tags of a request; further ones are left out. */
export const MAX_TAGS = 16;
