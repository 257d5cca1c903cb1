import { createDice, type Dice } from "./dice.ts";

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

/** Random faults from a seed, to test how a client handles them. */
export interface ChaosOptions {
  readonly seed: number;
  /** Percentage of completion requests that get a fault. */
  readonly percent: number;
}

/** Bad enough for every kind of fault to be seen within a hundred requests or two, and mild enough to work with. */
export const CHAOS_PERCENT = 20;

/** Possible faults in the grammar of `faults.ts`. A repeated entry is more frequent. */
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
  // Slow, and split in the middle of its characters.
  (dice) => `drip=${1 + dice.roll(40)}; every=${1 + dice.roll(5)}`,
];

/**
 * The fault that the completion request `number`, counted from 1, meets; undefined when it meets none. A pure function: with
 * the same seed the same requests in the same order meet the same faults.
 */
export function drawFault({ seed, percent }: ChaosOptions, number: number): string | undefined {
  const dice = createDice(`chaos ${seed} ${number}`);
  return dice.roll(100) < percent ? dice.pick(DRAWS)(dice) : undefined;
}

/** A fault that the simulator's options ask for. */
export interface ConfiguredFault {
  /** The grammar is in `faults.ts`. */
  readonly fault: string;
  /** Only requests for this model; without it, all requests. */
  readonly model?: string;
}

/** Where a request may name a fault. */
interface FaultSources {
  readonly header: string | undefined;
  readonly model: string;
  readonly directive: string | undefined;
}

/** Selects the fault of each request and counts faults limited by `times`. */
export interface FaultBook {
  /** The fault to commit, if one is asked for and has not been used up. Throws `SyntaxError` for one it cannot read. */
  take(sources: FaultSources): Fault | undefined;
}

/** Counted texts that are remembered; the oldest is forgotten first, and would then count from the start. */
const MAX_COUNTED = 1000;

/**
 * Throws `SyntaxError` when a configured fault cannot be read. With `chaos`, a request for which nobody has asked for one
 * meets the fault that is drawn for its place in the order of all.
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
