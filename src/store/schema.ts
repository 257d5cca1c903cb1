/** The tables as the migrations leave them. Times are Unix milliseconds. */
export interface Schema {
  readonly accounts: AccountRow;
  readonly api_keys: KeyRow;
}

interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly created_at_ms: number;
}

export interface KeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  /** SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
  readonly display: string;
  /** A JSON list of model IDs; null for all. */
  readonly models: string | null;
  /** A JSON list. */
  readonly capabilities: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
  /** The key that a rotation made in its place. */
  readonly replaced_by: string | null;
}
