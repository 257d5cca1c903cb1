// A mock upstream with the parts of Anthropic's and Gemini's dialects that the loads need, on raw sockets with precomputed
// answers, so that it costs little compared with the server under test.
import { createServer, type Socket } from "node:net";
import { reportReady } from "../child.ts";
import {
  answerOf,
  type HeldShape,
  pictureResponse,
  REFUSAL,
  STREAM_HEAD,
  STREAM_TAIL,
  STREAM_TEXT,
  streamTexts,
  type StreamShape,
  TOOLS_RESPONSE,
  WHOLE_RESPONSE,
  type WholeAnswer,
} from "./answers.ts";

/** Text events per write when flat out: more than one, so that the server under test limits the pace. */
const BURST = 8;
const TICK_MS = 1;

interface PacedStream {
  readonly socket: Socket;
  readonly intervalMs: number;
  /** Text events as one piece. */
  readonly texts: Buffer;
  readonly together: number;
  left: number;
  dueMs: number;
}

const paced = new Set<PacedStream>();
let ticker: NodeJS.Timeout | undefined;
let staggered = 0;

const server = createServer({ noDelay: true }, (socket) => {
  let pending: Buffer | undefined;
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes: Buffer) => {
    const input = pending === undefined ? bytes : Buffer.concat([pending, bytes]);
    pending = undefined;
    let offset = 0;
    while (offset < input.length) {
      const end = answerNext(socket, input, offset);
      if (end === undefined) {
        pending = input.subarray(offset);
        break;
      }
      offset = end;
    }
  });
});

/** Answers the request that begins at `offset`; returns its end, or undefined while it is incomplete. */
function answerNext(socket: Socket, input: Buffer, offset: number): number | undefined {
  const headEnd = input.indexOf("\r\n\r\n", offset, "latin1");
  if (headEnd < 0) return undefined;
  const head = input.toString("latin1", offset, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const end = headEnd + 4 + Number(length ?? 0);
  if (end > input.length) return undefined;
  const body = input.toString("latin1", headEnd + 4, end);
  // Anthropic's dialect names the model in the body, Gemini's in the path.
  const model = /"model": ?"([^"]*)"/.exec(body)?.[1] ?? /^POST \S*\/models\/([^:/ ]+):/.exec(head)?.[1];
  const answer = answerOf(model ?? "");
  const wantsStream = /"stream": ?true/.test(body);
  if (typeof answer === "string" && !wantsStream) socket.write(wholeAnswer(answer));
  else if (typeof answer === "object" && wantsStream) beginStream(socket, answer);
  else socket.write(REFUSAL);
  return end;
}

let picture: Buffer | undefined;

function wholeAnswer(answer: WholeAnswer): Buffer {
  if (answer === "whole") return WHOLE_RESPONSE;
  return answer === "tools" ? TOOLS_RESPONSE : (picture ??= pictureResponse());
}

function beginStream(socket: Socket, shape: StreamShape | HeldShape): void {
  socket.write(STREAM_HEAD);
  if ("everyMs" in shape) return hold(socket, shape);
  const { chunks, intervalMs, firstMs = 0, together = 1 } = shape;
  if (intervalMs === 0) return pour(socket, chunks);
  // Spreads the events of streams that start together.
  const phaseMs = staggered++ % intervalMs;
  const dueMs = performance.now() + firstMs + phaseMs;
  paced.add({
    socket,
    intervalMs,
    texts: together === 1 ? STREAM_TEXT : streamTexts(together),
    together,
    left: chunks,
    dueMs,
  });
  ticker ??= setInterval(tick, TICK_MS);
}

/** Runs until the other side closes it. */
function hold(socket: Socket, { everyMs }: HeldShape): void {
  socket.write(STREAM_TEXT);
  const timer = setInterval(() => socket.write(STREAM_TEXT), everyMs);
  socket.once("close", () => clearInterval(timer));
}

/** Writes as fast as the socket accepts, and yields to other sockets after each burst. */
function pour(socket: Socket, left: number): void {
  if (socket.destroyed) return;
  if (left === 0) {
    socket.write(STREAM_TAIL);
    return;
  }
  const count = Math.min(left, BURST);
  const isFlowing = socket.write(count === BURST ? FULL_BURST : Buffer.concat(Array<Buffer>(count).fill(STREAM_TEXT)));
  if (isFlowing) setImmediate(() => pour(socket, left - count));
  else socket.once("drain", () => pour(socket, left - count));
}

const FULL_BURST = Buffer.concat(Array<Buffer>(BURST).fill(STREAM_TEXT));

function tick(): void {
  const nowMs = performance.now();
  for (const stream of paced) {
    while (stream.left > 0 && stream.dueMs <= nowMs) {
      const count = Math.min(stream.left, stream.together);
      stream.socket.write(count === stream.together ? stream.texts : streamTexts(count));
      stream.left -= count;
      stream.dueMs += stream.intervalMs;
    }
    if (stream.left > 0 && !stream.socket.destroyed) continue;
    stream.socket.write(STREAM_TAIL);
    paced.delete(stream);
  }
  if (paced.size > 0) return;
  clearInterval(ticker);
  ticker = undefined;
}

reportReady(server);
