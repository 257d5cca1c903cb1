import { type CallPlan, tokenTexts } from "./call-plan.ts";
import { NUMBERED_WIRES, type NumberedAnswer, type NumberedWire, type WireName } from "./numbered-wire.ts";

/** Form of a call. */
export interface Asked {
  readonly wire: WireName;
  readonly streamed: boolean;
}

/** What a reader can receive of a response. */
export interface Promised {
  /** Maximum number of tokens. */
  readonly tokens: number;
  /** Whether the response counts as complete: `either` if it breaks so close to its end that both are permitted. */
  readonly complete: "yes" | "no" | "either";
}

/** A body, and what a reader has after each byte. */
export interface Body {
  readonly bytes: Buffer;
  readonly type: string;
  /** Offsets at which each token, and the finish reason, is readable: the earliest and the certain one. */
  readonly tokenEnds: readonly number[];
  readonly finish: { readonly earliest: number; readonly certain: number };
  /** Offsets at which each event is complete. */
  readonly eventEnds: readonly number[];
}

/** Content types. */
export const EVENT_STREAM = "text/event-stream; charset=utf-8";
export const JSON_TYPE = "application/json";

/** Returns the body of a plan's response before it breaks. */
export function bodyOf(plan: CallPlan, { wire: name, streamed }: Asked): Body {
  const wire = NUMBERED_WIRES[name];
  const { fault } = plan;
  const answer: NumberedAnswer = {
    texts: tokenTexts(plan),
    usage: plan.usage,
    finished: fault.kind !== "unfinished" && fault.kind !== "error",
  };
  if (!streamed || plan.wholeInstead) return wholeBody(plan, wire, answer);
  return streamBody(plan, wire, answer);
}

function wholeBody({ fault, tokens }: CallPlan, wire: NumberedWire, answer: NumberedAnswer): Body {
  const said = fault.kind === "error" ? wire.errors.error(529, "Scripted.") : wire.whole(answer);
  const bytes = Buffer.from(JSON.stringify(said));
  const end = bytes.length;
  return {
    bytes,
    type: JSON_TYPE,
    tokenEnds: Array.from({ length: tokens }, () => end),
    finish: { earliest: end, certain: end },
    eventEnds: [end],
  };
}

function streamBody({ fault, lineEnd }: CallPlan, wire: NumberedWire, answer: NumberedAnswer): Body {
  const { opening, tokens, closing, marker } = wire.events(answer);
  const pieces: Buffer[] = [];
  const eventEnds: number[] = [];
  let size = 0;
  /** Adds an event; returns the offsets of its data's end and of the event's end. */
  const add = (data: object | string): { data: number; blank: number } => {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const type = typeof data === "object" && "type" in data ? `event: ${String(data.type)}${lineEnd}` : "";
    const lines = Buffer.from(`${type}data: ${text}`);
    pieces.push(lines, Buffer.from(lineEnd + lineEnd));
    const end = size + lines.length;
    eventEnds.push((size = end + 2 * lineEnd.length));
    return { data: end, blank: size };
  };
  for (const event of opening) add(event);
  const said = fault.kind === "error" ? tokens.slice(0, fault.after) : tokens;
  const ends = said.map(add);
  let finish = ends.at(-1);
  if (fault.kind === "error") pieces.push(Buffer.from(wire.errors.errorEvent(529, "Scripted.")));
  else {
    const [first] = closing.map(add);
    finish = closing.length > 0 ? first : finish;
    if (marker !== undefined && (fault.kind !== "unfinished" || fault.marker)) add(marker);
  }
  return {
    bytes: Buffer.concat(pieces),
    type: EVENT_STREAM,
    tokenEnds: ends.map(({ data }) => data),
    finish: { earliest: finish?.data ?? 0, certain: finish?.blank ?? 0 },
    eventEnds,
  };
}

/** Offset at which a response breaks. */
export function breaksAt({ fault }: CallPlan, { bytes }: Body): number {
  return fault.kind === "break" ? Math.floor(fault.at * bytes.length) : bytes.length;
}

/** Returns what the caller can receive of a plan's response. */
export function promiseOf(plan: CallPlan, asked: Asked): Promised {
  const { fault } = plan;
  const nothing: Promised = { tokens: 0, complete: "no" };
  const body = bodyOf(plan, asked);
  const isStream = body.type === EVENT_STREAM;
  switch (fault.kind) {
    case "none":
      return { tokens: plan.tokens, complete: "yes" };
    case "error":
      return { tokens: isStream ? Math.min(fault.after, plan.tokens) : 0, complete: "no" };
    case "unfinished":
      return { tokens: isStream ? plan.tokens : 0, complete: "no" };
    case "break":
      return brokenPromise(plan, body, isStream);
    default:
      return nothing;
  }
}

function brokenPromise(plan: CallPlan, body: Body, isStream: boolean): Promised {
  const { fault } = plan;
  if (fault.kind !== "break") throw new TypeError("this plan does not break");
  // The whole body is sent with a wrong content-length.
  const at = fault.how === "underrun" ? body.bytes.length : breaksAt(plan, body);
  if (!isStream) return { tokens: 0, complete: "no" };
  const tokens = body.tokenEnds.filter((end) => end <= at).length;
  if (at < body.finish.earliest) return { tokens, complete: "no" };
  // A reset discards unread data, and garbage may replace a part of the response.
  const isSure = at >= body.finish.certain && fault.how !== "reset" && fault.how !== "garbage";
  return { tokens, complete: isSure ? "yes" : "either" };
}
