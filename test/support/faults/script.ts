import { gzipSync } from "node:zlib";
import { type Asked, type Body, bodyOf, breaksAt, EVENT_STREAM, JSON_TYPE } from "./body.ts";
import { type CallPlan, tokenText, UNASKED } from "./call-plan.ts";
import { NUMBERED_WIRES } from "./numbered-wire.ts";

/** A step on a connection. */
export type Step =
  | { readonly kind: "write"; readonly bytes: Buffer }
  | { readonly kind: "wait"; readonly ms: number }
  /** The last step: the connection is kept alive, closed, reset, or left open until the other side closes it. */
  | { readonly kind: "keep" | "close" | "reset" | "hang" };

/** Returns the steps of a plan. A pure function. */
export function toScript(plan: CallPlan, asked: Asked): Step[] {
  const { fault, delayMs, interim } = plan;
  const before: Step[] = [
    ...(delayMs > 0 ? [{ kind: "wait" as const, ms: delayMs }] : []),
    ...Array.from({ length: interim }, () => write("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")),
  ];
  switch (fault.kind) {
    case "hang":
    case "close":
    case "reset":
      return [...before, { kind: fault.kind }];
    case "status": {
      const body = JSON.stringify(NUMBERED_WIRES[asked.wire].errors.error(fault.status, "Scripted."));
      const advice = fault.advice === undefined ? [] : [fault.advice.join(": ")];
      const location = fault.status === 307 ? ["location: /elsewhere"] : [];
      return [...before, ...short(fault.status, JSON_TYPE, body, [...advice, ...location])];
    }
    case "garbage":
      return [...before, ...short(200, asked.streamed ? EVENT_STREAM : JSON_TYPE, "data: {nonsense\n\n\u0000{{]\n\n")];
    case "html":
      return [...before, ...short(200, "text/html", "<html><body><h1>Bad gateway</h1></body></html>")];
    case "empty":
      return [...before, ...short(200, asked.streamed ? EVENT_STREAM : JSON_TYPE, "")];
    case "gzip": {
      const { bytes, type } = bodyOf(plan, asked);
      return [...before, ...short(200, type, gzipSync(bytes), ["content-encoding: gzip"])];
    }
    default:
      return [...before, ...answerSteps(plan, bodyOf(plan, asked), asked)];
  }
}

function write(text: string | Buffer): Step {
  return { kind: "write", bytes: Buffer.from(text) };
}

function head(status: number, headers: readonly string[]): Buffer {
  return Buffer.from(`HTTP/1.1 ${status} Scripted\r\n${headers.map((header) => `${header}\r\n`).join("")}\r\n`);
}

function short(status: number, type: string, body: string | Buffer, headers: readonly string[] = []): Step[] {
  const bytes = Buffer.from(body);
  const all = [`content-type: ${type}`, `content-length: ${bytes.length}`, ...headers];
  return [write(Buffer.concat([head(status, all), bytes])), { kind: "keep" }];
}

const JUNK = Buffer.from("\n\ndata: {nonsense\n\ndata: {nonsense\n\n");

function answerSteps(plan: CallPlan, body: Body, asked: Asked): Step[] {
  const { fault } = plan;
  const how = fault.kind === "break" ? fault.how : undefined;
  const at = breaksAt(plan, body);
  const sent = how === "overrun" || how === "underrun" ? body.bytes : body.bytes.subarray(0, at);
  const announced = { overrun: at, underrun: body.bytes.length + 10 } as const;
  const length =
    how === "overrun" || how === "underrun"
      ? announced[how]
      : how === "garbage"
        ? at + JUNK.length
        : how === "end"
          ? at
          : body.bytes.length;
  const framing = how === "overrun" || how === "underrun" ? "length" : plan.framing;
  const headers = [
    `content-type: ${body.type}`,
    ...(framing === "chunked" ? ["transfer-encoding: chunked"] : []),
    ...(framing === "length" ? [`content-length: ${length}`] : []),
    ...(framing === "close" ? ["connection: close"] : []),
  ];
  const pieces = split(plan, body, sent);
  if (how === "garbage") pieces.push(JUNK);
  const framed = framing === "chunked" ? pieces.map(toChunk) : pieces;
  if (how === undefined || how === "end" || how === "garbage" || how === "overrun") {
    const last = framing === "chunked" ? "0\r\n\r\n" : "";
    framed.push(Buffer.concat([framed.pop() ?? Buffer.alloc(0), Buffer.from(last), unasked(plan, asked)]));
  }
  const steps = paced(plan, [head(200, headers), ...framed]);
  switch (how) {
    case "close":
    case "reset":
      return [...steps, { kind: how }];
    case "stall":
      return [...steps, { kind: "hang" }];
    case "underrun":
      return [...steps, { kind: "close" }];
    case undefined:
    case "end":
    case "garbage":
    case "overrun":
      return [...steps, { kind: framing === "close" ? "close" : "keep" }];
  }
}

/**
 * An unsolicited response that could be taken for that of the next request. It is sent with the last bytes of the
 * response before it, because later, with another request in flight, a client cannot distinguish it.
 */
function unasked(plan: CallPlan, { wire }: Asked): Buffer {
  if (!plan.followed) return Buffer.alloc(0);
  const texts = [tokenText({ ...plan, call: UNASKED }, 0)];
  const body = JSON.stringify(NUMBERED_WIRES[wire].whole({ texts, usage: plan.usage, finished: true }));
  const length = `content-length: ${Buffer.byteLength(body)}`;
  return Buffer.concat([head(200, [`content-type: ${JSON_TYPE}`, length]), Buffer.from(body)]);
}

function toChunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

/** Maximum number of writes for one response. */
const MAX_WRITES = 150;

/** Splits the bytes into the plan's writes. */
function split({ writes }: CallPlan, { eventEnds }: Body, bytes: Buffer): Buffer[] {
  if (bytes.length === 0) return [];
  switch (writes.kind) {
    case "whole":
      return [bytes];
    case "events":
      return cut(bytes, eventEnds);
    case "bytes": {
      const size = Math.max(writes.size, Math.ceil(bytes.length / MAX_WRITES));
      return cut(
        bytes,
        Array.from({ length: Math.floor(bytes.length / size) }, (_, index) => (index + 1) * size),
      );
    }
    case "in-characters":
      return cut(bytes, middlesOfCharacters(bytes));
  }
}

function cut(bytes: Buffer, ends: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    if (end > from && end <= bytes.length) pieces.push(bytes.subarray(from, (from = end)));
  }
  return pieces;
}

/** Returns offsets within multi-byte characters, distributed over the text. */
function middlesOfCharacters(bytes: Buffer): number[] {
  const places: number[] = [];
  const apart = Math.ceil(bytes.length / MAX_WRITES);
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at]! >= 0xc0 && at + 1 - (places.at(-1) ?? 0) >= apart) places.push(at + 1);
  }
  return places;
}

/** Adds the plan's delay between writes, or one of 0 ms, so that each is read separately. */
function paced({ writes }: CallPlan, pieces: readonly Buffer[]): Step[] {
  if (writes.kind === "whole") return [write(Buffer.concat(pieces))];
  const ms = writes.kind === "events" ? writes.everyMs : 0;
  return pieces.flatMap((bytes, index) =>
    index === 0 ? [write(bytes)] : [{ kind: "wait", ms } as const, write(bytes)],
  );
}
