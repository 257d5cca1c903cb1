import { ownCopy } from "../encoding/own-copy.ts";
import { createDice, type Dice } from "./dice.ts";

/**
 * A fault on demand. A fault consists of clauses separated by semicolons. Sources, in order of precedence: the request
 * header `x-simulator-fault`, the simulator's options, and `[[fault: …]]` in the last user message.
 *
 * Failures (at most one per fault):
 *
 * | clause | meaning |
 * |---|---|
 * | `status=529` | error response with this status and the dialect's error body |
 * | `hang` | accepts the request and never responds |
 * | `reset` | resets the connection before the first byte of a response |
 * | `garbage` | 200 with a body that does not match its content type |
 * | `html` | 200 with an HTML page |
 * | `empty` | 200 with an empty body |
 * | `gzip` | 200 with a compressed body that the request does not accept |
 * | `wrong-length` | the whole answer with a larger `content-length`, then the connection closes |
 * | `no-content` | 200, well-formed and finished, but without content |
 * | `truncate` | an answer without a finish reason; the body ends properly |
 * | `error-first` | 200, then an error as the first event |
 * | `error-after=3` | an error event after three content events |
 * | `hang-after=3` | no data after three content events |
 * | `cut-after=3` | the connection closes after three content events, in the middle of the chunked body |
 * | `reset-after=3` | the same with a reset |
 *
 * An answer that is not streamed breaks at half of its body instead (`…-after=0`: after its headers). An error is then
 * the whole body, with status 200.
 *
 * Modifiers, also valid without a failure:
 *
 * | clause | meaning |
 * |---|---|
 * | `delay=1500` | milliseconds before the headers |
 * | `drip=1` | size of each write of the body, in bytes |
 * | `every=50` | with `drip`: milliseconds between writes (default 10) |
 * | `retry-after=2` | with `status`: seconds, encoded as in the dialect |
 * | `message=…`, `code=…` | with `status`: error message and machine-readable code |
 * | `times=2` | applies to the first two requests with exactly this fault text; later ones succeed |
 * | `id=…` | ignored; makes the text unique, so that `times` counts it separately |
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
/** Largest delay of a Node timer; a larger one would fire immediately. */
const MAX_NUMBER = 2 ** 31 - 1;

/** Longest fault in characters: those with `times` are kept. */
const MAX_CHARS = 1000;

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

/** Parses a fault. Throws `SyntaxError` that names the invalid clause. */
export function parseFault(text: string): Fault {
  if (text.length > MAX_CHARS) throw new SyntaxError(`it has more than ${MAX_CHARS} characters`);
  const clauses = readClauses(text);
  const known = new Set<string>([...PLAIN, "error-first", ...NUMBERS, ...TEXTS]);
  for (const name of clauses.keys())
    if (!known.has(name)) throw new SyntaxError(`unknown clause "${name}"; known are: ${[...known].join(", ")}`);
  const failures = readFailures(clauses);
  if (failures.length > 1) throw new SyntaxError("only one failure per fault is allowed");
  const bytes = readNumber(clauses, "drip");
  if (bytes === 0) throw new SyntaxError("drip=0 would never end");
  return {
    // A slice would keep the whole prompt in memory.
    text: ownCopy(text),
    failure: failures[0],
    delayMs: readNumber(clauses, "delay") ?? 0,
    drip: bytes === undefined ? undefined : { bytes, everyMs: readNumber(clauses, "every") ?? 10 },
    times: readNumber(clauses, "times") ?? Infinity,
  };
}

/** Random faults from a seed, to test how a client handles them. */
export interface ChaosOptions {
  readonly seed: number;
  /** Percentage of completion requests that get a fault. */
  readonly percent: number;
}

/** High enough to see each kind of fault within 100 to 200 requests, and low enough to work with. */
export const CHAOS_PERCENT = 20;

/** Faults to draw from. A repeated entry is more frequent. */
const DRAWS: readonly [draw: (dice: Dice) => string, ...((dice: Dice) => string)[]] = [
  () => "status=429; retry-after=1",
  () => "status=429",
  () => "status=500",
  () => "status=503",
  () => "status=503; retry-after=2",
  () => "status=529",
  () => "status=529",
  () => "status=401",
  () => "reset",
  () => "hang",
  (dice) => dice.pick(["garbage", "html", "empty", "gzip", "wrong-length"]),
  (dice) => dice.pick(["no-content", "truncate"]),
  () => "error-first",
  (dice) => `error-after=${1 + dice.roll(20)}`,
  (dice) => `hang-after=${1 + dice.roll(20)}`,
  (dice) => `cut-after=${dice.roll(20)}`,
  (dice) => `cut-after=${dice.roll(20)}`,
  (dice) => `reset-after=${1 + dice.roll(20)}`,
  (dice) => `delay=${500 + dice.roll(2_000)}`,
  // Slow writes that split multi-byte characters.
  (dice) => `drip=${1 + dice.roll(40)}; every=${1 + dice.roll(5)}`,
];

/**
 * Returns the fault of the completion request with this number, counted from 1; undefined for none. Pure function: the
 * same seed and order of requests give the same faults.
 */
export function drawFault({ seed, percent }: ChaosOptions, number: number): string | undefined {
  const dice = createDice(`chaos ${seed} ${number}`);
  return dice.roll(100) < percent ? dice.pick(DRAWS)(dice) : undefined;
}

/** A fault in the simulator's options. */
export interface ConfiguredFault {
  /** Clauses of the fault, see `Fault`. */
  readonly fault: string;
  /** Applies only to this model; without it, to all. */
  readonly model?: string;
}

/** Sources of a request's fault. */
interface FaultSources {
  readonly header: string | undefined;
  readonly model: string;
  readonly directive: string | undefined;
}

/** Selects the fault of each request and counts faults limited by `times`. */
export interface FaultBook {
  /**
   * Returns the fault to apply, unless there is none or `times` is exhausted. Throws `SyntaxError` for an invalid one.
   */
  take(sources: FaultSources): Fault | undefined;
}

/** Maximum number of counted faults. The oldest is evicted first, and would count from zero again. */
const MAX_COUNTED = 1000;

/**
 * Creates a fault book. Throws `SyntaxError` for an invalid configured fault. With `chaos`, requests without another
 * fault get the one drawn for their number.
 */
export function openFaultBook(configured: readonly ConfiguredFault[], chaos?: ChaosOptions): FaultBook {
  const standing = configured.map(({ fault, model }) => ({ fault: parseFault(fault), model }));
  const taken = new Map<string, number>();
  let requests = 0;

  const isSpent = (fault: Fault): boolean => {
    if (fault.times === Infinity) return false;
    const count = (taken.get(fault.text) ?? 0) + 1;
    if (!taken.has(fault.text) && taken.size >= MAX_COUNTED) taken.delete(taken.keys().next().value ?? "");
    taken.set(fault.text, count);
    return count > fault.times;
  };

  return {
    take({ header, model, directive }) {
      requests += 1;
      const drawn = chaos && drawFault(chaos, requests);
      const candidates = [
        ...(header === undefined ? [] : [parseFault(header)]),
        ...standing.filter((entry) => entry.model === undefined || entry.model === model).map((entry) => entry.fault),
        ...(directive === undefined ? [] : [parseFault(directive)]),
        ...(drawn === undefined ? [] : [parseFault(drawn)]),
      ];
      return candidates.find((fault) => !isSpent(fault));
    },
  };
}
