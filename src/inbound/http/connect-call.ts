import { type DescMessage, fromJson, fromJsonString, type JsonValue, type Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import {
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { Clock } from "../../core/clock.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { releaseMemory } from "../../core/release-memory.ts";
import { requireDecodableJson } from "../arrival-limits.ts";
import { MAX_DEADLINE_MS, type OpenCall } from "../calls.ts";
import { decodeRequest } from "../decode-request.ts";
import { drained } from "../drain.ts";
import { type BodyMeter, type BodySource, gunzip, readBody } from "./body.ts";
import { parseOnce } from "./exchange.ts";
import {
  formOfBody,
  isGrpcWeb,
  type MessageForm,
  readQuery,
  requireReadableTimeout,
  timeoutMsOf,
  TIMEOUTS,
} from "./protocols.ts";
import { slicesOf } from "./stream.ts";

export const MAX_REPLY_BYTES = 64 * 1024 * 1024;

/** Prefix of a streamed message: one byte of flags, four of length. */
const ENVELOPE_BYTES = 5;
/** Flag of a compressed message. */
const COMPRESSED = 1;

/** Handlers of the Connect protocol and of gRPC-Web, JSON and binary, by their paths. */
export type ConnectHandlers = ReadonlyMap<string, UniversalHandler>;

/** The decoded request of a call. */
const REQUEST = createContextKey<Message | undefined>(undefined);

/** Gives handlers the decoded request in place of the empty one that the library has read. */
const withRequest: Interceptor = (next) => (call) => {
  const request = call.contextValues.get(REQUEST)!;
  return next(call.stream ? { ...call, message: inPlaceOf(call.message, request) } : { ...call, message: request });
};

async function* inPlaceOf(messages: AsyncIterable<Message>, request: Message): AsyncGenerator<Message> {
  for await (const _ of messages) yield request;
}

export interface ConnectOptions {
  readonly interceptors?: Interceptor[];
  /** Whether gRPC-Web is served beside Connect. Default: false. */
  readonly grpcWeb?: boolean;
}

/** Builds the handlers of the services that `addRoutes` adds. */
export function connectHandlers(
  addRoutes: (router: ConnectRouter) => void,
  { interceptors = [], grpcWeb = false }: ConnectOptions,
): ConnectHandlers {
  const router = createConnectRouter({
    // gRPC has a server of its own.
    grpc: false,
    grpcWeb,
    connect: true,
    acceptCompression: [],
    writeMaxBytes: MAX_REPLY_BYTES,
    interceptors: [withRequest, ...interceptors],
  });
  addRoutes(router);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

/** One request to a handler, and its response. */
export interface ConnectExchange extends BodySource {
  /** Path without the query. */
  readonly path: string;
  /** Its signal is passed to the handler. */
  readonly call: OpenCall;
  readonly clock: Clock;
  readonly maxBodyBytes: number;
  /** Context values for the handler. */
  readonly contextValues: ContextValues;
  /** Called with the size of the first piece of the answer before it is written; throws to refuse it. Default: nothing is. */
  readonly encoded?: (bytes: number) => void;
  /** A list of a unary answer that its handler has encoded apart from the message. Default: none. */
  readonly list?: () => EncodedList | undefined;
  /** Response headers of handler and server, as the flat list that `writeHead` takes. */
  readonly headerList: (header: Headers) => string[];
}

/** A list that belongs to a message: the fields of the binary message, or the elements of the list in JSON. */
export interface EncodedList {
  readonly name: string;
  readonly form: "binary" | "json";
  readonly pieces: readonly Buffer[];
}

/**
 * Reads and measures a request before the library decodes it, calls the handler, and writes the answer with back-pressure.
 * Throws a Failure before the first byte of the answer, and the call's reason at any time.
 */
export async function answerConnect(handler: UniversalHandler, exchange: ConnectExchange): Promise<void> {
  const read = await readConnect(handler, exchange);
  await runConnect(handler, exchange, read());
}

/** A decoded request, and the form in which it came. */
export interface ConnectRequest {
  readonly form: MessageForm;
  readonly message: Message;
}

/** Reads a request. The returned function decodes it and throws `invalid_request` or `request_too_large`. */
export async function readConnect(
  { method }: UniversalHandler,
  exchange: ConnectExchange,
  meter?: BodyMeter,
): Promise<() => ConnectRequest> {
  const { request } = exchange;
  const isQuery = request.method !== "POST" && method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const query = isQuery ? readQuery(request) : undefined;
  const form = query ?? formOfBody(request, method);
  requireReadableTimeout(request);
  const limits = { maxBytes: exchange.maxBodyBytes, ...(meter !== undefined && { meter }) };
  const body = query?.content ?? (await readBody(exchange, exchange.call, limits));
  const content = form.compressed ? await (form.enveloped ? gunzipMessage(body, limits) : gunzip(body, limits)) : body;
  if (content !== body) releaseMemory([body]);
  return () => ({ form, message: decode(form, content, method.input) });
}

/** Decompresses the message of an envelope, if its flag says that it is compressed. */
async function gunzipMessage(body: Buffer, limits: Parameters<typeof gunzip>[1]): Promise<Buffer> {
  if (body[0] !== COMPRESSED || body.length < ENVELOPE_BYTES) return body;
  // What follows the message is refused when the envelope is checked.
  if (body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) return body;
  const message = await gunzip(body.subarray(ENVELOPE_BYTES), limits);
  const envelope = Buffer.alloc(ENVELOPE_BYTES);
  envelope.writeUInt32BE(message.length, 1);
  const joined = Buffer.concat([envelope, message]);
  releaseMemory([message]);
  return joined;
}

/** Calls the handler and writes its answer with back-pressure. */
export async function runConnect(
  handler: UniversalHandler,
  exchange: ConnectExchange,
  { form, message }: ConnectRequest,
): Promise<void> {
  const isStream = handler.method.methodKind !== "unary";
  exchange.contextValues.set(REQUEST, message);
  await writeReply(exchange, await handler(toUniversalRequest(exchange, form)), isStream);
}

/**
 * Decodes a body, measured before, and releases its memory. The library would answer undecodable input with its parser's message, no
 * record, and an internal error for broken bytes.
 */
function decode({ enveloped, binary }: MessageForm, body: Buffer, desc: DescMessage): Message {
  const content = enveloped ? body.subarray(ENVELOPE_BYTES) : body;
  const isEnveloped =
    enveloped && body.length >= ENVELOPE_BYTES && body[0] === 0 && body.readUInt32BE(1) === content.length;
  if (enveloped && !isEnveloped) throw invalidField("request", "is not one message in its envelope");
  if (binary) return decoded(() => decodeRequest(desc, content), desc);
  // As the library does: a message without an envelope may have no unknown fields, one in an envelope no duplicate ones.
  const json = parseOnce(content, enveloped).json as JsonValue;
  requireDecodableJson(desc, json);
  if (!enveloped) return decoded(() => fromJson(desc, json), desc);
  try {
    return decoded(() => fromJsonString(desc, content.toString(), { ignoreUnknownFields: true }), desc);
  } finally {
    releaseMemory([content]);
  }
}

/** Decodes bytes. Throws `invalid_request` without repeating any value of them. */
function decoded<T>(run: () => T, desc: DescMessage): T {
  try {
    return run();
  } catch (reason) {
    if (reason instanceof Failure) throw reason;
    const { message, cause } = reason as Error;
    if (isFieldError(cause)) throw invalidField(cause.field().name, "has a value of another type, or occurs twice");
    const unknown = unknownKeyIn(message);
    if (unknown !== undefined) throw invalidField(unknown, "is not a field of this message");
    throw invalidField("request", `is not a ${desc.typeName} message`);
  }
}

const BEFORE_KEY = ': key "';
const AFTER_KEY = '" is unknown';

/**
 * The unknown key that the library's message is about; undefined for another message. Messages repeat megabytes of the caller's keys: an
 * expression would begin to look at each place of one that looks like the beginning.
 */
export function unknownKeyIn(message: string): string | undefined {
  const from = message.indexOf(BEFORE_KEY) + BEFORE_KEY.length;
  const isAboutKey = from >= BEFORE_KEY.length && message.endsWith(AFTER_KEY);
  return isAboutKey ? message.slice(from, -AFTER_KEY.length) : undefined;
}

/** The library's request, whose message is empty: the handler gets the decoded one. */
function toUniversalRequest(
  { request, path, call, contextValues }: ConnectExchange,
  { binary, enveloped }: MessageForm,
): UniversalServerRequest {
  const header = new Headers();
  // For a later deadline the library's timer warns on standard error, and ends at once.
  const isTimed = (timeoutMsOf(request) ?? 0) <= MAX_DEADLINE_MS;
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || (!isTimed && TIMEOUTS.has(name))) continue;
    // The body is decompressed.
    if (!name.endsWith("content-encoding") && name !== "grpc-encoding")
      header.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const body = EMPTY[binary ? "binary" : "json"][enveloped ? "enveloped" : "plain"];
  if (Buffer.isBuffer(body)) header.set("content-length", String(body.length));
  // A GET request is served as the POST request with the same message.
  if (request.method !== "POST") header.set("content-type", `application/${binary ? "proto" : "json"}`);
  return {
    httpVersion: request.httpVersion,
    method: "POST",
    url: new URL(path, "http://connect.invalid").toString(),
    header,
    body: Buffer.isBuffer(body) ? once(body) : body,
    signal: call.signal,
    contextValues,
  };
}

/** Bodies with an empty message. */
const EMPTY = {
  binary: { plain: Buffer.alloc(0), enveloped: Buffer.from([0, 0, 0, 0, 0]) },
  json: { plain: {}, enveloped: Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]) },
} as const;

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Writes the handler's answer with back-pressure; the library's own writer waits for a reader without limit. */
async function writeReply(
  { request, response, clock, call, headerList, encoded, list }: ConnectExchange,
  { status, header = new Headers(), body }: UniversalServerResponse,
  isStream: boolean,
): Promise<void> {
  // A stream is complete at its last message.
  const pace = { clock, call: isStream ? call : call.answering() };
  const writeHead = (): void => void response.writeHead(status, headerList(header));
  for await (const bytes of body ?? []) {
    let pieces: readonly Buffer[] = [toBuffer(bytes)];
    // At the first write: handlers add headers until then.
    if (!response.headersSent) {
      encoded?.(bytes.length);
      const apart = list?.();
      if (apart !== undefined) pieces = withList(pieces[0]!, apart, isGrpcWeb(request));
      if (header.has("content-length")) header.set("content-length", String(sizeOf(pieces)));
      writeHead();
    }
    for (const piece of pieces)
      for (const slice of slicesOf(piece)) {
        if (response.write(slice)) pace.call.wrote(slice.length);
        else
          await drained(response, { ...pace, bytes: slice.length }).catch((reason: unknown) => {
            // The deadline has passed: the next message is the end of the stream with the error.
            if (!isStream || Failure.from(reason).code !== "deadline_exceeded") throw reason;
          });
      }
  }
  if (!response.headersSent) writeHead();
  response.end();
}

/** A message, which has other fields, with a list: in JSON before its closing bracket. */
function withList(bytes: Buffer, { name, form, pieces }: EncodedList, isEnveloped: boolean): readonly Buffer[] {
  const message = isEnveloped ? bytes.subarray(ENVELOPE_BYTES) : bytes;
  const all =
    form === "binary"
      ? [message, ...pieces]
      : [message.subarray(0, -1), Buffer.from(`,${JSON.stringify(name)}:[`), ...pieces, Buffer.from("]}")];
  if (!isEnveloped) return all;
  const envelope = Buffer.alloc(ENVELOPE_BYTES);
  envelope.writeUInt32BE(sizeOf(all), 1);
  return [envelope, ...all];
}

function sizeOf(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
