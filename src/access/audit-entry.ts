import { hash } from "node:crypto";

/**
 * Kinds of actors: an account, an administration key, an API key, a user of the command line, a caller without a session, or the
 * program itself.
 */
export const ACTOR_KINDS = ["account", "admin_key", "api_key", "command_line", "nobody", "gateway"] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

export interface AuditActor {
  readonly kind: ActorKind;
  /** The ID of the account or the key; at the command line the name of the operating system's user. */
  readonly id: string | undefined;
}

/** Kinds of objects that entries are about. */
export const OBJECT_KINDS = [
  "account",
  "key",
  "completion",
  "invitation",
  "configuration",
  "provider",
  "alert",
  "alert_channel",
  "admin_key",
  "role",
  "audit_stream",
] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

export interface AuditObject {
  readonly kind: ObjectKind;
  readonly id: string;
}

/** Facts by name, as JSON. Never a secret, and no e-mail address. */
export type AuditFields = Readonly<Record<string, unknown>>;

/** An entry of the audit log before it has its place in the chain. */
export interface UnchainedEntry {
  /** Unix milliseconds. */
  readonly atMs: number;
  /** Such as `sign_in_failed` or `key_revoked`. */
  readonly action: string;
  readonly actor: AuditActor;
  /** The caller's network, such as `192.0.2.0/24`; undefined for the command line. */
  readonly network: string | undefined;
  /** The caller's program, such as `Firefox on Linux`. */
  readonly client: string | undefined;
  readonly object: AuditObject | undefined;
  /** The account that the entry concerns, which may read it. */
  readonly accountId: string | undefined;
  readonly result: "done" | "failed";
  /** The changed fields before and after as JSON texts; undefined where there were none. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** Further facts as a JSON text; undefined for none. */
  readonly details: string | undefined;
}

/** A place in the chain: that of the first entry is 1. */
export interface ChainLink {
  readonly sequence: number;
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
}

/** An entry as stored. */
export interface AuditEntry extends UnchainedEntry, ChainLink {}

/** The link before the first entry. */
export const GENESIS: ChainLink = { sequence: 0, hash: "0".repeat(64) };

/** Beginning of the hashed text: another encoding gets another one. */
const ENCODING = "parley.audit.1";

/**
 * The hash of an entry: SHA-256 of the hash before it, a line feed, and the entry as a JSON list in this order. It must not change: the
 * hashes of all stored entries depend on it.
 */
export function hashOf(previousHash: string, sequence: number, entry: UnchainedEntry): string {
  const { atMs, action, actor, network, client, object, accountId, result, before, after, details } = entry;
  const values = [
    ENCODING,
    sequence,
    atMs,
    action,
    actor.kind,
    actor.id,
    network,
    client,
    object?.kind,
    object?.id,
    accountId,
    result,
    before,
    after,
    details,
  ];
  // JSON has null for undefined items of a list.
  return hash("sha256", `${previousHash}\n${JSON.stringify(values)}`, "hex");
}

/** Chains entries after a link: gives each its number and hash. */
export function chain(after: ChainLink, entries: readonly UnchainedEntry[]): AuditEntry[] {
  let { sequence, hash: previous } = after;
  return entries.map((entry) => {
    sequence += 1;
    previous = hashOf(previous, sequence, entry);
    return { ...entry, sequence, hash: previous };
  });
}

/** Formats a link for people to keep: `1234:0a1b…`. */
export function formatLink({ sequence, hash: text }: ChainLink): string {
  return `${sequence}:${text}`;
}

/** Parses a text of `formatLink`; undefined for any other text. */
export function parseLink(text: string): ChainLink | undefined {
  const [, sequence, digest] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  return sequence === undefined || digest === undefined ? undefined : { sequence: Number(sequence), hash: digest };
}
