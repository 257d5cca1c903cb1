import { createDice, type Dice, fingerprint } from "../../../src/simulator/dice.ts";

/*
 * What an upstream does with each call, drawn from a seed. Nothing here knows of sockets: the same plans can be played on
 * real ones and in memory.
 */

/** One call of an upstream: the `call`-th, from 0, that a caller's request number `request` has led to. */
export interface CallId {
  readonly seed: number;
  readonly request: number;
  readonly call: number;
}

/** What goes wrong with the answer to a call; `none` also where only its form is unusual. */
export type CallFault =
  | { readonly kind: "none" }
  /** The request is taken and never answered, or its connection is closed or reset in place of an answer. */
  | { readonly kind: "hang" | "close" | "reset" }
  /** A refusal in the dialect's own words. */
  | { readonly kind: "status"; readonly status: number; readonly advice: RetryAdvice }
  /** Status 200 with what is no answer: not JSON, a page of HTML, no bytes, or an answer in gzip that nobody asked for. */
  | { readonly kind: "garbage" | "html" | "empty" | "gzip" }
  /** An error after so many tokens: in place of the first, in the middle, or in place of the end. */
  | { readonly kind: "error"; readonly after: number }
  /** Everything is said but why it ended; with or without the marker of a stream's end. */
  | { readonly kind: "unfinished"; readonly marker: boolean }
  /** After this share of the body's bytes, below 1. */
  | { readonly kind: "break"; readonly how: Breakage; readonly at: number };

/**
 * How a body breaks: its connection is closed or reset, nothing more comes, what comes means nothing, the body ends as if
 * it were complete, its `content-length` is too small for it, or too large.
 */
export type Breakage = "close" | "reset" | "stall" | "garbage" | "end" | "overrun" | "underrun";

/** A header that says when to come back. */
export type RetryAdvice = readonly [name: string, value: string] | undefined;

/** How bytes come: at once, an event at a time, so many at a time, or in writes that end in the middle of a character. */
export type Writes =
  | { readonly kind: "whole" | "in-characters" }
  | { readonly kind: "events"; readonly everyMs: number }
  | { readonly kind: "bytes"; readonly size: number };

/** All that an upstream does with one call. */
export interface CallPlan extends CallId {
  readonly fault: CallFault;
  /** How many tokens the answer has, and which of them is a very long one. */
  readonly tokens: number;
  readonly hugeToken: number | undefined;
  /** What it says it counted: other figures for each call. */
  readonly usage: { readonly prompt: number; readonly completion: number };
  /** Before the headers. */
  readonly delayMs: number;
  readonly writes: Writes;
  /** How the body says where it ends. */
  readonly framing: "chunked" | "length" | "close";
  /** What ends a line of a stream. */
  readonly lineEnd: "\n" | "\r\n" | "\r";
  /** How many heads of status 1xx come before the real one. */
  readonly interim: number;
  /** A second answer that nobody asked for follows the first in the same write. Its tokens are those of call `UNASKED`. */
  readonly followed: boolean;
  /** A stream is asked for, and the answer comes whole all the same. */
  readonly wholeInstead: boolean;
}

/** The call that the tokens of a second, unasked answer are those of. */
export const UNASKED = 90;

/** Characters of a very long token; beyond what sockets and parsers take at once. */
export const HUGE_CHARS = 300_000;

/** What is hard to carry: characters of many bytes, what JSON and event streams give a meaning to, an end marker. */
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

/**
 * The text of one token: no two in a run are the same, and each says whose it is. So text that is lost, repeated, in
 * another order, or of another call, request or run is seen by whoever knows the call.
 */
export function tokenText(id: CallId, index: number, hugeToken?: number): string {
  const name = `${id.request}.${id.call}.${index}`;
  const mark = fingerprint(`${id.seed} ${name}`).slice(0, 6);
  const tail = TAILS[Number.parseInt(mark.slice(0, 2), 16) % TAILS.length];
  return `<${name} ${mark}${tail}>${index === hugeToken ? "é~".repeat(HUGE_CHARS / 2) : ""}`;
}

/** The texts of all tokens of a call's answer, in order. */
export function tokenTexts(plan: CallPlan): string[] {
  return Array.from({ length: plan.tokens }, (_, index) => tokenText(plan, index, plan.hugeToken));
}

/** A plan without any fault, in one piece. */
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

/** Of ten calls about five go well. A pure function: the same call of the same seed always meets the same. */
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
      // A long answer takes half a second at most.
      return { kind: "events", everyMs: dice.roll(Math.ceil(100 / tokens)) };
  }
}

const STATUSES = [429, 429, 429, 500, 500, 503, 503, 529, 529, 502, 504, 401, 403, 404, 400, 408, 307] as const;

// Short ones: a model that asks for a long rest has it, and then takes no part in what follows.
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
