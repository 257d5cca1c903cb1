import { StoreError, UnreachableError } from "../store-error.ts";

/** Message of a refused connection to a server that takes no writes. */
export const READ_ONLY = "it takes no writes: it is a standby, or set to be read-only";

const UNTRUSTED =
  "its certificate is not of a trusted authority; name the file of that authority in database.url: &sslrootcert=FILE";

/** Reasons and remedies for an operator, by SQLSTATE or system error code. */
const REMEDIES: Readonly<Record<string, string>> = {
  "28P01": "it does not take our password; correct database.url",
  "28000": "it refuses this user or host; check its pg_hba.conf and database.url",
  "3D000": "there is no database of this name; create it, or correct database.url",
  "42501": "this user may not do that; grant it the right to create tables in the schema",
  "53300": "it has no connection left; raise its max_connections, or run fewer replicas",
  "57P03": "it is starting or stopping",
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "it has closed the connection",
  ENOTFOUND: "this host name does not exist",
  EAI_AGAIN: "the host's name cannot be looked up at the moment",
  ETIMEDOUT: "it cannot be reached",
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name than that in database.url",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ENOENT: "a file that database.url names (sslrootcert, sslcert, sslkey) does not exist",
  "25006": READ_ONLY,
  "57014": "a statement took too long",
  "55P03": "a lock is held for too long",
};

/** Message of pg-pool when no connection becomes free in time; it has no code. */
export const POOL_FULL = "timeout exceeded when trying to connect";

/** Messages of the driver's own time limits, which have no code. */
const DRIVER_TIMEOUTS: ReadonlySet<string> = new Set([
  "Query read timeout",
  "timeout expired",
  "Connection terminated due to connection timeout",
]);
/** SQLSTATE of a protocol violation; a pooler uses it for a startup setting that it does not support. */
const PROTOCOL_VIOLATION = "08P01";
const POOLER =
  "a pooler such as PgBouncer refuses our settings; set its ignore_startup_parameters = statement_timeout and its pool_mode = session";

const CONNECTION_CLASS = "08";
/** SQLSTATE classes after which a connection is useless: connection, server resources, operator intervention. */
const LOST_CLASSES = new Set([CONNECTION_CLASS, "53", "57"]);
const STATEMENT_TOO_LONG = "57014";
/** The server was a primary when the connection was made, and is none now. */
const READ_ONLY_TRANSACTION = "25006";

/**
 * Errors that pass by themselves: the server is down, starts, is slow or full, or has become a standby, or the network to it
 * is down.
 */
const PASSING: ReadonlySet<string> = new Set([
  STATEMENT_TOO_LONG,
  "53300",
  "57P01",
  "57P02",
  "57P03",
  READ_ONLY_TRANSACTION,
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
]);
const PASSING_MESSAGES: ReadonlySet<string> = new Set([
  ...DRIVER_TIMEOUTS,
  POOL_FULL,
  READ_ONLY,
  "Connection terminated unexpectedly",
]);

/** Whether a statement has exceeded its time limit. */
export function isTooLong(error: unknown): error is Error {
  return error instanceof Error && (error as { code?: unknown }).code === STATEMENT_TOO_LONG;
}

/** Whether the connection, rather than the statement, has failed. */
export function isConnectionError(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  // The driver's own errors, such as time limits, have no code; system errors have names, not five characters.
  if (typeof code !== "string" || code.length !== 5) return true;
  return (code !== STATEMENT_TOO_LONG && LOST_CLASSES.has(code.slice(0, 2))) || code === READ_ONLY_TRANSACTION;
}

/** Converts an error into one with a message for the operator. PostgreSQL's messages hold no password. */
export function toStoreError(where: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new (isPassing(error) ? UnreachableError : StoreError)(`${where}: ${reason(error)}.`, { cause: error });
}

/** Whether the failure passes by itself, without a change of the configuration. */
export function isPassing(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === undefined) return PASSING_MESSAGES.has(message ?? "");
  // Poolers answer with codes of this class while their server is down.
  if (code.startsWith(CONNECTION_CLASS)) return !refusesSettings(error);
  return PASSING.has(code);
}

function refusesSettings(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  return code === PROTOCOL_VIOLATION && message?.includes("startup parameter") === true;
}

function reason(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  const remedy = REMEDIES[code ?? ""];
  if (remedy !== undefined) return remedy;
  if (refusesSettings(error)) return `${POOLER} (${message})`;
  if (message === POOL_FULL) return "all connections to it are in use by statements that take long";
  if (code === undefined && DRIVER_TIMEOUTS.has(message ?? "")) return "it does not answer in time";
  return message || code || "unknown reason";
}
