import { connect, type Socket } from "node:net";
import { type Assignment, type Caller, count, type Tally } from "./caller.ts";
import {
  clientPreface,
  encodeFrame,
  FLAG,
  type Frame,
  FRAME,
  FrameReader,
  grpcHeaders,
  grpcMessage,
  windowUpdate,
} from "./http2-frames.ts";
import { MarkCounter } from "./mark-counter.ts";
import { toGrpcRequest } from "./requests.ts";

/** Bytes after which the connection's window is extended, long before it is exhausted. */
const WINDOW_STEP_BYTES = 1 << 24;

/**
 * One HTTP/2 connection with the load's number of calls in flight, from precomputed frames. It does not read headers: a
 * call with another status than OK has too few marks, except after its last message; a stock client checks that case
 * before the first slice.
 */
export function createGrpcCaller({ load, target }: Assignment, tally: () => Tally): Caller {
  const path = `/parley.v1.CompletionService/${load.streamed ? "Stream" : "Create"}`;
  const headers = grpcHeaders({ path, authority: `127.0.0.1:${target.port}`, key: target.key });
  const message = grpcMessage(toGrpcRequest(load, target.grpcRequest));
  const requestOn = (stream: number): Buffer =>
    Buffer.concat([
      encodeFrame({ type: FRAME.headers, flags: FLAG.endHeaders, stream, payload: headers }),
      encodeFrame({ type: FRAME.data, flags: FLAG.endStream, stream, payload: message }),
    ]);

  let socket: Socket | undefined;
  let frames = new FrameReader();
  let nextStream = 1;
  let unacknowledged = 0;
  /** Calls in flight, by stream. */
  const calls = new Map<number, MarkCounter>();
  let more: () => boolean = () => false;
  let finish: (() => void) | undefined;

  const fill = (): void => {
    while (calls.size < load.callsPerConnection && more()) {
      calls.set(nextStream, new MarkCounter());
      socket ??= open();
      socket.write(requestOn(nextStream));
      nextStream += 2;
    }
    if (calls.size > 0) return;
    const done = finish;
    finish = undefined;
    done?.();
  };
  const end = (stream: number, problem?: string): void => {
    const marks = calls.get(stream)?.marks;
    if (marks === undefined) return;
    calls.delete(stream);
    count(tally(), marks, problem ?? (marks === load.marks ? undefined : `${marks} marks instead of ${load.marks}`));
  };
  const lose = (problem: string): void => {
    socket?.destroy();
    socket = undefined;
    frames = new FrameReader();
    nextStream = 1;
    more = () => false;
    for (const stream of calls.keys()) end(stream, problem);
    fill();
  };
  const take = ({ type, flags, stream, payload }: Frame): void => {
    if (type === FRAME.data) {
      unacknowledged += payload.length;
      calls.get(stream)?.push(payload);
    }
    if (type === FRAME.data || type === FRAME.headers) {
      if ((flags & FLAG.endStream) !== 0) end(stream);
    } else if (type === FRAME.reset) end(stream, `a reset, code ${payload.readUInt32BE()}`);
    else if (type === FRAME.goAway) lose("the server sent GOAWAY");
    else if ((type === FRAME.settings || type === FRAME.ping) && (flags & FLAG.ack) === 0) {
      const echo = type === FRAME.ping ? payload : Buffer.alloc(0);
      socket?.write(encodeFrame({ type, flags: FLAG.ack, stream: 0, payload: echo }));
    }
  };
  const open = (): Socket => {
    const opened = connect({ port: target.port, host: "127.0.0.1", noDelay: true });
    opened.on("data", (bytes: Buffer) => {
      frames.push(bytes, take);
      if (unacknowledged > WINDOW_STEP_BYTES) {
        opened.write(windowUpdate(unacknowledged));
        unacknowledged = 0;
      }
      fill();
    });
    const lost = (problem: string): void => {
      // The connection has been replaced, and its calls are counted already.
      if (socket === opened) lose(problem);
    };
    opened.on("error", (error) => lost(error.message)).on("close", () => lost("the connection was closed"));
    opened.write(clientPreface());
    return opened;
  };

  return {
    run: (wanted) =>
      new Promise((resolve) => {
        more = wanted;
        finish = resolve;
        fill();
      }),
  };
}
