/**
 * Faults on demand. A fault is written as clauses separated by semicolons, and is chosen by the request header
 * `x-simulator-fault`, by the simulator's options, or by `[[fault: …]]` in the last user message; the first that is
 * there wins, in this order.
 *
 * What goes wrong (at most one of these):
 *
 * | clause | meaning |
 * |---|---|
 * | `status=529` | this status, with the dialect's own error body |
 * | `hang` | the request is accepted and never answered |
 * | `reset` | the connection is reset before any byte of an answer |
 * | `garbage` | 200 whose body is not what its content type says |
 * | `html` | 200 with a page of HTML |
 * | `empty` | 200 with a body of no bytes |
 * | `gzip` | 200 with a compressed body that the request does not accept |
 * | `wrong-length` | the whole answer, then the connection closes: more was announced |
 * | `no-content` | 200, well-formed and finished, but with nothing in it |
 * | `truncate` | the answer comes but never says that it is finished; the body ends cleanly |
 * | `error-first` | 200, then an error as the first event |
 * | `error-after=3` | an error event after three content events |
 * | `hang-after=3` | silence after three content events |
 * | `cut-after=3` | the connection ends after three content events, in the middle of the chunked body |
 * | `reset-after=3` | the same with a reset |
 *
 * An answer that is not streamed breaks at half of its body instead (`…-after=0`: after its headers); an error is then
 * the whole body, with status 200.
 *
 * What goes with it, or stands alone:
 *
 * | clause | meaning |
 * |---|---|
 * | `delay=1500` | milliseconds before the headers |
 * | `drip=1` | the body comes in writes of this many bytes … |
 * | `every=50` | … with this many milliseconds between them (default 10) |
 * | `retry-after=2` | with `status`: seconds, where the dialect puts them |
 * | `message=…`, `code=…` | with `status`: the error's message and machine-readable code |
 * | `times=2` | only the first two requests with this very text; later ones are served |
 * | `id=…` | ignored; makes a text different from others, so that it is counted by itself |
 */
export interface Fault {
  readonly text: string;
  readonly failure: FaultFailure | undefined;
  readonly delayMs: number;
  readonly drip: { readonly bytes: number; readonly everyMs: number } | undefined;
  readonly times: number;
}

export type FaultFailure =
  | { readonly kind: "status"; readonly status: number; readonly detail: StatusDetail }
  | { readonly kind: (typeof PLAIN)[number] }
  | { readonly kind: "break"; readonly how: "error" | "hang" | "cut" | "reset"; readonly after: number };

interface StatusDetail {
  readonly retryAfterSeconds?: number;
  readonly message?: string;
  readonly code?: string;
}

const PLAIN = ["hang", "reset", "garbage", "html", "empty", "gzip", "wrong-length", "no-content", "truncate"] as const;
const BREAKS = { "error-after": "error", "hang-after": "hang", "cut-after": "cut", "reset-after": "reset" } as const;
const NUMBERS = ["delay", "drip", "every", "retry-after", "times", "status", ...Object.keys(BREAKS)];
const TEXTS = ["message", "code", "id"];
/** The longest timer that Node keeps; a longer one would fire at once. */
const MAX_NUMBER = 2 ** 31 - 1;

type Clauses = ReadonlyMap<string, string>;

function readClauses(text: string): Clauses {
  const clauses = new Map<string, string>();
  for (const clause of text.split(";")) {
    const trimmed = clause.trim();
    if (trimmed === "") continue;
    const equals = trimmed.indexOf("=");
    const name = (equals < 0 ? trimmed : trimmed.slice(0, equals)).trim();
    clauses.set(name, equals < 0 ? "" : trimmed.slice(equals + 1).trim());
  }
  return clauses;
}

function readNumber(clauses: Clauses, name: string): number | undefined {
  const value = clauses.get(name);
  if (value === undefined) return undefined;
  if (!/^\d+$/u.test(value) || Number(value) > MAX_NUMBER)
    throw new SyntaxError(`${name}=${value} is not a whole number`);
  return Number(value);
}

function readStatus(clauses: Clauses): FaultFailure | undefined {
  const status = readNumber(clauses, "status");
  if (status === undefined) return undefined;
  if (status < 400 || status > 599) throw new SyntaxError(`status=${status} is not between 400 and 599`);
  const retryAfterSeconds = readNumber(clauses, "retry-after");
  const message = clauses.get("message");
  const code = clauses.get("code");
  const detail = {
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
  };
  return { kind: "status", status, detail };
}

function readFailures(clauses: Clauses): FaultFailure[] {
  const status = readStatus(clauses);
  const failures: FaultFailure[] = status ? [status] : [];
  for (const kind of PLAIN) if (clauses.has(kind)) failures.push({ kind });
  if (clauses.has("error-first")) failures.push({ kind: "break", how: "error", after: 0 });
  for (const [name, how] of Object.entries(BREAKS)) {
    const after = readNumber(clauses, name);
    if (after !== undefined) failures.push({ kind: "break", how, after });
  }
  return failures;
}

/** Reads a fault. Throws `SyntaxError` with a message that says which clause is wrong. */
export function parseFault(text: string): Fault {
  const clauses = readClauses(text);
  const known = new Set<string>([...PLAIN, "error-first", ...NUMBERS, ...TEXTS]);
  for (const name of clauses.keys()) if (!known.has(name)) throw new SyntaxError(`unknown clause "${name}"`);
  const failures = readFailures(clauses);
  if (failures.length > 1) throw new SyntaxError("only one thing can go wrong at a time");
  const bytes = readNumber(clauses, "drip");
  if (bytes === 0) throw new SyntaxError("drip=0 would never end");
  return {
    text,
    failure: failures[0],
    delayMs: readNumber(clauses, "delay") ?? 0,
    drip: bytes === undefined ? undefined : { bytes, everyMs: readNumber(clauses, "every") ?? 10 },
    times: readNumber(clauses, "times") ?? Infinity,
  };
}
