import { gzipSync } from "node:zlib";
import type { OutgoingHttpHeaders } from "node:http2";
import type { DescMessage } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { GetModelRequestSchema } from "../../../gen/parley/v1/model_pb.js";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { HealthCheckRequestSchema } from "../../../gen/health/v1/health_pb.js";
import { clientPreface, encodeFrame, FLAG, FRAME, grpcHeaders, grpcMessage } from "../../../bench/load/http2-frames.ts";
import { damage } from "./damage.ts";
import { messageBytes } from "./protobuf-bytes.ts";
import type { Random } from "./random.ts";

/** One stream on the gRPC entrance. */
export interface GrpcInput {
  readonly headers: OutgoingHttpHeaders;
  /** Bytes of its DATA frames. */
  readonly body: Buffer;
  /** Whether the caller waits for the response; otherwise it cancels once everything is sent. */
  readonly stays: boolean;
}

/** Placeholder for the key in the corpus. */
const KEY = "{{key}}";

/** Formats a call as a file of the corpus. */
export function writeInput({ headers, body, stays }: GrpcInput, key: string): Buffer {
  const file = JSON.stringify({ headers, body: body.toString("base64"), stays }, null, 2);
  return Buffer.from(`${file.replaceAll(key, KEY)}\n`);
}

/** Parses a file of the corpus. */
export function readInput(bytes: Buffer, key: string): GrpcInput {
  const file = JSON.parse(bytes.toString().replaceAll(KEY, key)) as Omit<GrpcInput, "body"> & { body: string };
  return { ...file, body: Buffer.from(file.body, "base64") };
}

/** Methods by path, with their request types. */
const METHODS: readonly (readonly [path: string, request: DescMessage])[] = [
  ["/parley.v1.CompletionService/Create", CompletionRequestSchema],
  ["/parley.v1.CompletionService/Create", CompletionRequestSchema],
  ["/parley.v1.CompletionService/Stream", CompletionRequestSchema],
  ["/parley.v1.CompletionService/Stream", CompletionRequestSchema],
  ["/parley.v1.ModelService/List", GetModelRequestSchema],
  ["/parley.v1.ModelService/Get", GetModelRequestSchema],
  ["/parley.v1.KeyService/GetCurrent", GetModelRequestSchema],
  ["/grpc.health.v1.Health/Check", HealthCheckRequestSchema],
  ["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ServerReflectionRequestSchema],
];

/** It sends messages until its caller cancels. */
const WATCH = "/grpc.health.v1.Health/Watch";

const UNKNOWN_PATHS = [
  "/",
  "//",
  "/parley.v1.CompletionService",
  "/parley.v1.CompletionService/create",
  "/parley.v1.CompletionService/Create/",
  "/parley.v1.CompletionService/Create?a=b",
  "/parley.console.v1.KeyService/List",
  "/__proto__/constructor",
  `/${"a".repeat(4000)}`,
  "/%00",
];

const TIMEOUTS = [
  "1n",
  "0S",
  "1m",
  "100m",
  "99999999H",
  "100000000S",
  "-1S",
  "1",
  "S",
  "1.5S",
  "1x",
  "",
  " 1S",
  "1S,2S",
];

const HEADERS: readonly (readonly [name: string, values: readonly (string | string[])[]])[] = [
  [
    "content-type",
    ["application/grpc+proto", "application/grpc+json", "application/grpc-web", "application/json", "text/html", ""],
  ],
  ["grpc-encoding", ["identity", "gzip", "deflate", "br", "snappy", "", "__proto__", "gzip, gzip"]],
  ["grpc-accept-encoding", ["gzip", "nothing", "", "gzip,deflate,identity"]],
  [
    "authorization",
    ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer sk_parley_", `Bearer ${"a".repeat(8000)}`, "Bearer \xe9\xff"],
  ],
  ["x-request-id", ["mine", "", "a".repeat(129), "\x01", "é", ["a", "b"]]],
  ["anything-bin", ["AAEC", "AAEC=", "%%%", "====", "", "AA,BB", "\xff", "a".repeat(3000)]],
  ["authorization-bin", ["AAEC"]],
  ["grpc-status-details-bin", ["AAEC", "!"]],
  ["grpc-status", ["0", "99"]],
  ["grpc-message", ["%zz"]],
  ["grpc-previous-rpc-attempts", ["1", "-1"]],
  ["grpc-internal-encoding-request", ["gzip"]],
  ["grpc-made-up", ["a"]],
  ["x-text", ["é日", "\x7f", " a ", "a".repeat(5000), ["a", "b"]]],
  ["__proto__", ["a"]],
  ["constructor", ["a"]],
  ["te", ["trailers"]],
  ["user-agent", ["", "grpc-node-js/0", "\x01"]],
  ["x-request-timeout-ms", ["0", "1", "NaN"]],
];

/** Draws a call with random bytes, frames or metadata. */
export function grpcInput(key: string, random: Random): GrpcInput {
  const [path, request] = random.pick(METHODS);
  const kind = random.below(100);
  const message = messageBytes(request, random);
  const headers = headersOf(path, key);
  if (kind < 50) return { headers, body: grpcMessage(message), stays: true };
  if (kind < 70) {
    const encoded = random.percent(30)
      ? { ...headers, "grpc-encoding": random.pick(["gzip", "identity", "br"]) }
      : headers;
    const { body, isWhole } = framed(message, random);
    return { headers: encoded, body, stays: isWhole };
  }
  if (kind < 72) return { headers: { ...headers, ":path": WATCH }, body: grpcMessage(Buffer.alloc(0)), stays: false };
  if (kind < 76)
    return { headers: { ...headers, ":path": random.pick(UNKNOWN_PATHS) }, body: grpcMessage(message), stays: true };
  for (let more = 1 + random.below(3); more > 0; more--) {
    const [name, values] = random.percent(30) ? (["grpc-timeout", TIMEOUTS] as const) : random.pick(HEADERS);
    const value = random.pick<string | string[]>(values);
    if (random.percent(5)) delete headers[name];
    else Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return { headers, body: grpcMessage(message), stays: random.percent(95) };
}

function headersOf(path: string, key: string): OutgoingHttpHeaders {
  return {
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    authorization: `Bearer ${key}`,
  };
}

/** Returns a message with a prefix that may be invalid. An incomplete one announces bytes that are never sent. */
function framed(message: Buffer, random: Random): { readonly body: Buffer; readonly isWhole: boolean } {
  const right = grpcMessage(message);
  switch (random.below(8)) {
    case 0:
      return { body: right.subarray(0, random.below(right.length)), isWhole: true };
    case 1: {
      const flagged = Buffer.from(right);
      flagged[0] = random.pick([1, 2, 0x80, 0xff]);
      return { body: flagged, isWhole: true };
    }
    case 2: {
      const zipped = grpcMessage(gzipSync(random.percent(20) ? Buffer.alloc(200_000) : message));
      zipped[0] = 1;
      return { body: random.percent(20) ? damage(zipped, random) : zipped, isWhole: true };
    }
    case 3: {
      const announced = Buffer.from(right);
      announced.writeUInt32BE(random.pick([message.length + 1, 33 * 1024 * 1024, 0x7fffffff, 0xffffffff]), 1);
      return { body: announced, isWhole: random.percent(50) };
    }
    case 4:
      return { body: Buffer.concat([right, right]), isWhole: true };
    case 5:
      return { body: Buffer.concat([right, random.bytes(random.below(8))]), isWhole: true };
    case 6:
      return { body: Buffer.alloc(0), isWhole: random.percent(80) };
    default:
      return { body: random.bytes(random.below(40)), isWhole: random.percent(80) };
  }
}

/** Returns a whole connection with one call, with damage anywhere in its frames. */
export function damagedConnection(key: string, random: Random): Buffer {
  const [path, request] = random.pick(METHODS);
  const payload = grpcHeaders({ path, authority: "parley.example", key });
  const body = grpcMessage(messageBytes(request, random)).subarray(0, 16_384);
  const frames = Buffer.concat([
    clientPreface(),
    encodeFrame({ type: FRAME.headers, flags: FLAG.endHeaders, stream: 1, payload }),
    encodeFrame({ type: FRAME.data, flags: FLAG.endStream, stream: 1, payload: body }),
    encodeFrame({ type: FRAME.ping, flags: 0, stream: 0, payload: Buffer.alloc(8) }),
  ]);
  return damage(frames, random);
}
