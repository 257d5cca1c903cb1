// A mock upstream that speaks as much of Anthropic's dialect as the loads need, on bare sockets with answers made
// beforehand, so that it costs little beside what it feeds.
import { createServer, type Socket } from "node:net";
import { reportReady } from "../child.ts";
import {
  answerOf,
  REFUSAL,
  STREAM_HEAD,
  STREAM_TAIL,
  STREAM_TEXT,
  WHOLE_RESPONSE,
  type StreamShape,
} from "./answers.ts";

/** Text events per write when flat out: more than one, so that the server under test is what limits the pace. */
const BURST = 8;
const TICK_MS = 1;

interface PacedStream {
  readonly socket: Socket;
  readonly intervalMs: number;
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

/** Answers the request that begins at `offset`; where it ends, or undefined while it is incomplete. */
function answerNext(socket: Socket, input: Buffer, offset: number): number | undefined {
  const headEnd = input.indexOf("\r\n\r\n", offset, "latin1");
  if (headEnd < 0) return undefined;
  const length = /\r\ncontent-length: *(\d+)/i.exec(input.toString("latin1", offset, headEnd))?.[1];
  const end = headEnd + 4 + Number(length ?? 0);
  if (end > input.length) return undefined;
  const body = input.toString("latin1", headEnd + 4, end);
  const answer = answerOf(/"model":"([^"]*)"/.exec(body)?.[1] ?? "");
  const wantsStream = body.includes('"stream":true');
  if (answer === "whole" && !wantsStream) socket.write(WHOLE_RESPONSE);
  else if (typeof answer === "object" && wantsStream) beginStream(socket, answer);
  else socket.write(REFUSAL);
  return end;
}

function beginStream(socket: Socket, { chunks, intervalMs }: StreamShape): void {
  socket.write(STREAM_HEAD);
  if (intervalMs === 0) return pour(socket, chunks);
  // Streams that begin together must not have all their events in the same instant.
  const phaseMs = staggered++ % intervalMs;
  paced.add({ socket, intervalMs, left: chunks, dueMs: performance.now() + phaseMs });
  ticker ??= setInterval(tick, TICK_MS);
}

/** As fast as the socket takes it. Each burst gives way to other sockets. */
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
    for (; stream.left > 0 && stream.dueMs <= nowMs; stream.left--) {
      stream.socket.write(STREAM_TEXT);
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
