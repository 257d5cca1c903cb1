import { type DescMessage, fromBinary, fromJson, fromJsonString, type JsonValue } from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { type ConnectRouter, type ContextValues, createConnectRouter, type Interceptor } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { parseContentType } from "@connectrpc/connect/protocol-connect";
import type { Clock } from "../../core/clock.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { requireDecodable, requireDecodableJson } from "../arrival-limits.ts";
import type { OpenCall } from "../calls.ts";
import { drained } from "../drain.ts";
import { type BodyMeter, type BodySource, readBody, requireUncompressed } from "./body.ts";
import { parseBody } from "./exchange.ts";

const MAX_REPLY_BYTES = 64 * 1024 * 1024;

/** A streamed message on the wire: a byte of flags and four of length come before it. */
const ENVELOPE_BYTES = 5;

/** Handlers of the Connect protocol, JSON and binary, by their paths. */
export type ConnectHandlers = ReadonlyMap<string, UniversalHandler>;

export interface ConnectOptions {
  /** The largest message that any of them reads. */
  readonly maxBodyBytes: number;
  readonly interceptors?: Interceptor[];
}

/** Builds the handlers of the services that `addRoutes` adds. */
export function connectHandlers(
  addRoutes: (router: ConnectRouter) => void,
  { maxBodyBytes, interceptors = [] }: ConnectOptions,
): ConnectHandlers {
  const router = createConnectRouter({
    // gRPC has its own entrance, on HTTP/2.
    grpc: false,
    grpcWeb: false,
    connect: true,
    acceptCompression: [],
    readMaxBytes: maxBodyBytes,
    writeMaxBytes: MAX_REPLY_BYTES,
    interceptors,
  });
  addRoutes(router);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

/** One request to a handler, and the answer it will have. */
export interface ConnectExchange extends BodySource {
  /** Without the query. */
  readonly path: string;
  /** Its signal is the one that the handler sees. */
  readonly call: OpenCall;
  readonly clock: Clock;
  readonly maxBodyBytes: number;
  /** What the handler finds in its context. */
  readonly contextValues: ContextValues;
  /** The answer's headers, the handler's and the entrance's own, in the flat form that `writeHead` takes. */
  readonly headerList: (header: Headers) => string[];
}

/**
 * Reads and measures a request before the library decodes it, has it answered, and writes the answer as fast as it is
 * read. Throws a Failure while nothing of the answer is out, and the call's reason whenever it ends.
 */
export async function answerConnect(handler: UniversalHandler, exchange: ConnectExchange): Promise<void> {
  const read = await readConnect(handler, exchange);
  await runConnect(handler, exchange, read());
}

/** A request's body as Connect's handler takes it: parsed, or in bytes. */
export type CheckedBody = Buffer | JsonValue;

/** Reads a request. What it answers with checks the request, and throws `invalid_request` or `request_too_large`. */
export async function readConnect(
  { method }: UniversalHandler,
  exchange: ConnectExchange,
  meter?: BodyMeter,
): Promise<() => CheckedBody> {
  const isStream = method.methodKind !== "unary";
  const type = parseContentType(exchange.request.headers["content-type"] ?? null);
  if (type?.stream !== isStream) {
    const prefix = `application/${isStream ? "connect+" : ""}`;
    throw new Failure("invalid_request", `The content-type header must be ${prefix}json or ${prefix}proto.`);
  }
  // What follows the library would refuse by itself, without details and without anybody being told.
  requireUncompressed(exchange.request, isStream ? "connect-content-encoding" : "content-encoding");
  requireReadableTimeout(exchange);
  const { maxBodyBytes: maxBytes } = exchange;
  const body = await readBody(exchange, exchange.call, { maxBytes, ...(meter !== undefined && { meter }) });
  return () => check(type, body, method.input);
}

/** Has a request answered, and writes the answer as fast as it is read. */
export async function runConnect(
  handler: UniversalHandler,
  exchange: ConnectExchange,
  body: CheckedBody,
): Promise<void> {
  await writeReply(exchange, await handler(toUniversalRequest(exchange, body)));
}

/** The header of Connect's protocol that says how long a caller waits. */
const TIMEOUT_HEADER = "connect-timeout-ms";

/** What is left of the caller's deadline, by Connect's own header; undefined also when that cannot be read. */
export function connectTimeoutMs({ request }: Pick<BodySource, "request">): number | undefined {
  const text = request.headers[TIMEOUT_HEADER];
  return typeof text === "string" && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

function requireReadableTimeout({ request }: Pick<BodySource, "request">): void {
  if (request.headers[TIMEOUT_HEADER] !== undefined && connectTimeoutMs({ request }) === undefined)
    throw invalidField(TIMEOUT_HEADER, "must be a number of milliseconds of at most ten digits");
}

/**
 * The body for Connect's handler: parsed where it is plain JSON, bytes otherwise, and measured in any case. It is decoded
 * once more than it would have to be: what the library cannot decode it answers by itself, with the words of its parser,
 * for which nobody is told, and calls broken bytes an internal error.
 */
function check(
  { stream, binary }: { readonly stream: boolean; readonly binary: boolean },
  body: Buffer,
  desc: DescMessage,
): CheckedBody {
  const message = stream ? body.subarray(ENVELOPE_BYTES) : body;
  const isEnveloped =
    stream && body.length >= ENVELOPE_BYTES && body[0] === 0 && body.readUInt32BE(1) === message.length;
  if (stream && !isEnveloped) throw invalidField("request", "is not one message in its envelope, uncompressed");
  if (!binary) {
    const json = parseBody(message) as JsonValue;
    requireDecodableJson(json);
    // As the library does it: what it is given parsed may have no field that it does not know, and text none twice.
    if (!stream) {
      decoded(desc, () => fromJson(desc, json));
      return json;
    }
    decoded(desc, () => fromJsonString(desc, message.toString(), { ignoreUnknownFields: true }));
    return body;
  }
  decoded(desc, () => requireDecodable(desc, message));
  decoded(desc, () => fromBinary(desc, message));
  return body;
}

/** What `decode` makes of a request's bytes. Throws `invalid_request`, which repeats no value of theirs. */
function decoded<T>(desc: DescMessage, decode: () => T): T {
  try {
    return decode();
  } catch (reason) {
    if (reason instanceof Failure) throw reason;
    const { message, cause } = reason as Error;
    if (isFieldError(cause)) throw invalidField(cause.field().name, "is not of its type, or is there twice");
    const unknown = /: key "(.*)" is unknown$/s.exec(message)?.[1];
    if (unknown !== undefined) throw invalidField(unknown, "is not a field of this message");
    throw invalidField("request", `is not a ${desc.typeName} message`);
  }
}

function toUniversalRequest(
  { request, path, call, contextValues }: ConnectExchange,
  body: CheckedBody,
): UniversalServerRequest {
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) header.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return {
    httpVersion: request.httpVersion,
    method: request.method ?? "",
    url: new URL(path, "http://connect.invalid").toString(),
    header,
    body: Buffer.isBuffer(body) ? once(body) : body,
    signal: call.signal,
    contextValues,
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Writes what Connect's handler answers as fast as it is read: the library's own writer would wait for a reader for ever. */
async function writeReply(
  { response, clock, call, headerList }: ConnectExchange,
  { status, header, body }: UniversalServerResponse,
): Promise<void> {
  // The parts of a stream are not complete until its last.
  const isStream = header?.get("content-type")?.startsWith("application/connect+") === true;
  const pace = { clock, call: isStream ? call : call.answering() };
  const writeHead = (): void => void response.writeHead(status, headerList(header ?? new Headers()));
  for await (const bytes of body ?? []) {
    // Not before there is something to write: until then the handlers add headers.
    if (!response.headersSent) writeHead();
    if (response.write(bytes)) continue;
    await drained(response, { ...pace, bytes: bytes.length }).catch((reason: unknown) => {
      // Nothing more is waited for then, and what comes next is the end, which says why there is no more.
      if (!isStream || Failure.from(reason).code !== "deadline_exceeded") throw reason;
    });
  }
  if (!response.headersSent) writeHead();
  response.end();
}
