import { createDice, type Dice, fingerprint } from "../../../src/simulator/dice.ts";

/*
 * What an upstream does with each call, drawn from a seed. Independent of sockets: the same plans also run in memory.
 */

/** One upstream call: number `call`, from 0, that the caller's request number `request` caused. */
export interface CallId {
  readonly seed: number;
  readonly request: number;
  readonly call: number;
}

/** Fault of a response; `none` also if only its form is unusual. */
type CallFault =
  | { readonly kind: "none" }
  /** No response: the request is accepted without one, or the connection is closed or reset. */
  | { readonly kind: "hang" | "close" | "reset" }
  /** An error in the dialect's format. */
  | { readonly kind: "status"; readonly status: number; readonly advice: RetryAdvice }
  /** Status 200 with an invalid body: not JSON, an HTML page, no bytes, or unsolicited gzip. */
  | { readonly kind: "garbage" | "html" | "empty" | "gzip" }
  /** An error after this number of tokens: in place of the first, in the middle, or in place of the end. */
  | { readonly kind: "error"; readonly after: number }
  /** A complete text without a finish reason; with or without the end marker of a stream. */
  | { readonly kind: "unfinished"; readonly marker: boolean }
  /** After this share of the body's bytes, below 1. */
  | { readonly kind: "break"; readonly how: Breakage; readonly at: number };

/**
 * How a body breaks: its connection is closed or reset, nothing more is sent, garbage follows, the body ends as if it
 * were complete, or its `content-length` is too small or too large.
 */
type Breakage = "close" | "reset" | "stall" | "garbage" | "end" | "overrun" | "underrun";

/** A retry-after header. */
type RetryAdvice = readonly [name: string, value: string] | undefined;

/** How bytes are written: at once, per event, in pieces of a size, or split within characters. */
type Writes =
  | { readonly kind: "whole" | "in-characters" }
  | { readonly kind: "events"; readonly everyMs: number }
  | { readonly kind: "bytes"; readonly size: number };

/** Plan of one upstream call. */
export interface CallPlan extends CallId {
  readonly fault: CallFault;
  /** Number of tokens, and the index of a very long one. */
  readonly tokens: number;
  readonly hugeToken: number | undefined;
  /** Reported usage: different for each call. */
  readonly usage: { readonly prompt: number; readonly completion: number };
  /** Delay before the headers. */
  readonly delayMs: number;
  readonly writes: Writes;
  /** Framing of the body. */
  readonly framing: "chunked" | "length" | "close";
  /** Line end in a stream. */
  readonly lineEnd: "\n" | "\r\n" | "\r";
  /** Number of 1xx responses before the final one. */
  readonly interim: number;
  /** Whether an unsolicited second response follows in the same write, with the tokens of call `UNASKED`. */
  readonly followed: boolean;
  /** Whether a stream request gets a whole response. */
  readonly wholeInstead: boolean;
}

/** Call number for the tokens of an unsolicited response. */
export const UNASKED = 90;

/** Length of a very long token: more than sockets and parsers take at once. */
const HUGE_CHARS = 300_000;

/** Difficult texts: multi-byte characters, syntax of JSON and event streams, an end marker. */
const TAILS = [
  "",
  " é",
  " 👋🏽",
  " ガ゙",
  "\n",
  ' "q"',
  " \\",
  "\u2028",
  "\r\n\r\n",
  " data: [DONE]",
  " {",
  " 0\r\n",
] as const;

/** Returns the text of one token, unique in a run, so that lost, repeated, reordered or foreign text is detected. */
export function tokenText(id: CallId, index: number, hugeToken?: number): string {
  const name = `${id.request}.${id.call}.${index}`;
  const mark = fingerprint(`${id.seed} ${name}`).slice(0, 6);
  const tail = TAILS[Number.parseInt(mark.slice(0, 2), 16) % TAILS.length];
  return `<${name} ${mark}${tail}>${index === hugeToken ? "é~".repeat(HUGE_CHARS / 2) : ""}`;
}

/** Returns all token texts of a call's response, in order. */
export function tokenTexts(plan: CallPlan): string[] {
  return Array.from({ length: plan.tokens }, (_, index) => tokenText(plan, index, plan.hugeToken));
}

/** A plan without faults, in one piece. */
export function goodPlan(id: CallId): CallPlan {
  return {
    ...id,
    fault: { kind: "none" },
    tokens: 3,
    hugeToken: undefined,
    usage: usageOf(id),
    delayMs: 0,
    writes: { kind: "whole" },
    framing: "chunked",
    lineEnd: "\n",
    interim: 0,
    followed: false,
    wholeInstead: false,
  };
}

/** Draws a plan; five of ten have no fault. A pure function of seed and call. */
export function drawCallPlan(id: CallId): CallPlan {
  const dice = createDice(`call ${id.seed} ${id.request} ${id.call}`);
  const oneIn = (times: number): boolean => dice.roll(times) === 0;
  const tokens = oneIn(8) ? 50 + dice.roll(150) : 1 + dice.roll(24);
  const fault = drawFault(dice, tokens);
  const framing = dice.pick<CallPlan["framing"]>(["chunked", "chunked", "chunked", "length", "close"]);
  return {
    ...id,
    fault,
    tokens,
    hugeToken: oneIn(20) ? dice.roll(tokens) : undefined,
    usage: usageOf(id),
    delayMs: oneIn(4) ? dice.roll(60) : 0,
    writes: drawWrites(dice, tokens),
    framing,
    lineEnd: dice.pick(["\n", "\n", "\n", "\r\n", "\r"]),
    interim: oneIn(12) ? 1 + dice.roll(3) : 0,
    followed: framing !== "close" && fault.kind === "none" && oneIn(12),
    wholeInstead: fault.kind === "none" && oneIn(20),
  };
}

function usageOf(id: CallId): CallPlan["usage"] {
  const mark = Number.parseInt(fingerprint(`usage ${id.seed} ${id.request} ${id.call}`).slice(0, 8), 16);
  return { prompt: 1 + (mark % 997), completion: 1 + (mark % 991) };
}

function drawWrites(dice: Dice, tokens: number): Writes {
  switch (dice.roll(5)) {
    case 0:
      return { kind: "whole" };
    case 1:
      return { kind: "in-characters" };
    case 2:
      return { kind: "bytes", size: 7 + dice.roll(600) };
    default:
      // At most half a second for a long response.
      return { kind: "events", everyMs: dice.roll(Math.ceil(100 / tokens)) };
  }
}

const STATUSES = [429, 429, 429, 500, 500, 503, 503, 529, 529, 502, 504, 401, 403, 404, 400, 408, 307] as const;

// Short ones, because a circuit breaker stays open for the retry-after.
const ADVICE: readonly [RetryAdvice, ...RetryAdvice[]] = [
  undefined,
  undefined,
  ["retry-after", "0"],
  ["retry-after-ms", "15"],
  ["retry-after", "soon"],
  ["retry-after", "-1"],
  ["retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"],
];

const BREAKAGES = ["close", "close", "reset", "stall", "garbage", "end", "overrun", "underrun"] as const;

function drawFault(dice: Dice, tokens: number): CallFault {
  const roll = dice.roll(100);
  if (roll < 46) return { kind: "none" };
  if (roll < 60) return { kind: "status", status: dice.pick(STATUSES), advice: dice.pick(ADVICE) };
  if (roll < 62) return { kind: "hang" };
  if (roll < 66) return { kind: dice.pick(["close", "reset"]) };
  if (roll < 72) return { kind: dice.pick(["garbage", "html", "empty", "gzip"]) };
  if (roll < 78) return { kind: "error", after: dice.pick([0, dice.roll(tokens + 1), tokens]) };
  if (roll < 81) return { kind: "unfinished", marker: dice.roll(2) === 0 };
  return { kind: "break", how: dice.pick(BREAKAGES), at: dice.roll(10_000) / 10_000 };
}
