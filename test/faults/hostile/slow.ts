import { RawConnection, rawRequest } from "../../product/support/raw-http.ts";
import { callBlock } from "./floods.ts";
import { dataFrame, frame, grpcMessage, headersFrame, PREFACE, RawHttp2, TYPE } from "./raw-http2.ts";
import { CHAT, type Target } from "./target.ts";

/** A slow client. */
export interface SlowClient {
  /** Whether the product has ended its connection or call. */
  readonly gone: boolean;
  /** Sends a few more bytes. */
  drip(): void;
  close(): void;
}

/** A kind of slow client. */
export interface SlowKind {
  readonly name: string;
  readonly open: (target: Target) => SlowClient;
}

interface SlowText {
  readonly first?: string | Buffer;
  readonly drip?: string;
}

function overHttp(target: Target, { first = "", drip = "" }: SlowText): SlowClient {
  const connection = new RawConnection(target.dialHttp()).write(first);
  return {
    get gone() {
      return connection.closed;
    },
    drip: () => void (connection.closed || connection.write(drip)),
    close: () => connection.close(),
  };
}

function overHttp2(target: Target, first: Buffer, drip: Buffer = Buffer.alloc(0)): SlowClient {
  const connection = new RawHttp2(target.dialGrpc()).write(first);
  return {
    get gone() {
      // Or the call has a status: its connection may continue with another call.
      return connection.closed || connection.arrived.some(({ stream, flags }) => stream === 1 && (flags & 1) === 1);
    },
    drip: () => void connection.write(drip),
    close: () => connection.close(),
  };
}

const HELLO = Buffer.concat([PREFACE, frame({ type: TYPE.settings })]);

function begunCall({ product }: Target, more: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([HELLO, headersFrame(1, callBlock(product.firstKey), "body follows"), more]);
}

const LENGTH = "content-length: 100000";

/** All kinds of slow senders. */
export const SLOW_KINDS: readonly SlowKind[] = [
  { name: "HTTP: nothing", open: (target) => overHttp(target, {}) },
  {
    name: "HTTP: headers",
    open: (target) => overHttp(target, { first: `${CHAT} HTTP/1.1\r\nhost: parley.example\r\nx-slow: `, drip: "a" }),
  },
  {
    name: "HTTP: body",
    open: (target) => overHttp(target, { first: rawRequest(CHAT, target.chatHeaders(LENGTH), "{"), drip: " " }),
  },
  {
    name: "HTTP: body in chunks",
    open: (target) =>
      overHttp(target, {
        first: rawRequest(CHAT, target.chatHeaders("transfer-encoding: chunked"), "1\r\n{\r\n"),
        drip: "1\r\n \r\n",
      }),
  },
  {
    name: "HTTP: asks to continue and does not",
    open: (target) => overHttp(target, { first: rawRequest(CHAT, target.chatHeaders(LENGTH, "expect: 100-continue")) }),
  },
  { name: "gRPC: nothing", open: (target) => overHttp2(target, Buffer.alloc(0)) },
  { name: "gRPC: half a preface", open: (target) => overHttp2(target, PREFACE.subarray(0, 10)) },
  { name: "gRPC: a preface and no settings", open: (target) => overHttp2(target, PREFACE) },
  { name: "gRPC: a call without a message", open: (target) => overHttp2(target, begunCall(target)) },
  {
    name: "gRPC: a message",
    open: (target) => {
      const begun = dataFrame(1, grpcMessage(Buffer.alloc(0), { length: 100_000 }), "more follows");
      return overHttp2(target, begunCall(target, begun), dataFrame(1, Buffer.from([0]), "more follows"));
    },
  },
  {
    name: "gRPC: after its GOAWAY",
    open: (target) => {
      const goaway = frame({ type: TYPE.goAway }, Buffer.alloc(8));
      const ping = frame({ type: TYPE.ping }, Buffer.alloc(8));
      const connection = new RawHttp2(target.dialGrpc()).write(Buffer.concat([HELLO, goaway])).pause();
      return {
        get gone() {
          return connection.closed;
        },
        drip: () => void connection.write(ping),
        close: () => connection.close(),
      };
    },
  },
];
