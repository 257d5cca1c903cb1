import { StoreError } from "../store-error.ts";

/** What an operator can do, by SQLSTATE or by the system's word. */
const REMEDIES: Readonly<Record<string, string>> = {
  "28P01": "it does not take our password; correct database.url",
  "28000": "it does not let us in; look at its pg_hba.conf and at database.url",
  "3D000": "there is no database of this name; create it, or correct database.url",
  "42501": "this user may not do that; grant it the right to create tables in the schema",
  "53300": "it has no connection left; raise its max_connections, or run fewer replicas",
  "57P03": "it is starting or stopping",
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "it has closed the connection",
  ENOTFOUND: "this host is not known",
  EAI_AGAIN: "the host's name cannot be looked up at the moment",
  ETIMEDOUT: "it cannot be reached",
  "57014": "a statement took too long",
  "55P03": "a lock is held for too long",
};

/** The driver's own time limits, which have no code. */
const DRIVER_TIMEOUTS: ReadonlySet<string> = new Set([
  "Query read timeout",
  "timeout expired",
  "timeout exceeded when trying to connect",
  "Connection terminated due to connection timeout",
]);
/** The protocol was violated: a pooler says so of a setting that it does not pass on. */
const PROTOCOL_VIOLATION = "08P01";
const POOLER =
  "a pooler such as PgBouncer refuses our settings; set its ignore_startup_parameters = statement_timeout and its pool_mode = session";

/** Classes of SQLSTATE after which a connection is of no use: connection, resources of the server, its operator. */
const LOST_CLASSES = new Set(["08", "53", "57"]);
const STATEMENT_TOO_LONG = "57014";

/** Whether the connection, rather than the statement, has failed. */
export function isConnectionError(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  // The driver's own errors, such as its time limits, have no code, and those of the system are words.
  if (typeof code !== "string" || code.length !== 5) return true;
  return code !== STATEMENT_TOO_LONG && LOST_CLASSES.has(code.slice(0, 2));
}

/** The same fault with a message for the operator. PostgreSQL's messages hold no password. */
export function toStoreError(where: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError(`${where}: ${reason(error)}.`, { cause: error });
}

function reason(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  const remedy = REMEDIES[code ?? ""];
  if (remedy !== undefined) return remedy;
  if (code === PROTOCOL_VIOLATION && message?.includes("startup parameter")) return `${POOLER} (${message})`;
  if (code === undefined && DRIVER_TIMEOUTS.has(message ?? "")) return "it does not answer in time";
  return message || code || "unknown reason";
}
