import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  CompletionRequestSchema,
  CompletionService,
} from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import type { Product } from "../../support/product.ts";

/**
 * The pieces of text of one streamed completion of `local/test`; reads no further than it is asked. Throws what the
 * stream ends with when that is an error.
 */
export type OpenTextStream = (product: Product, signal: AbortSignal) => AsyncGenerator<string>;

/** The ways into the product for a stream. */
export const TEXT_STREAMS: readonly (readonly [entrance: string, open: OpenTextStream])[] = [
  ["HTTP", openEventStream],
  ["gRPC", openGrpcStream],
  ["Connect", openConnectStream],
];

/** Said at the end of a complete stream, whatever the entrance calls it. */
export const DONE = "[DONE]";

const REQUEST = create(CompletionRequestSchema, {
  model: "local/test",
  messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "go" } }] }],
});

async function* openEventStream(product: Product, signal: AbortSignal): AsyncGenerator<string> {
  const body = JSON.stringify({ model: "local/test", stream: true, messages: [{ role: "user", content: "go" }] });
  const posting = { path: "/v1/chat/completions", contentType: "application/json", body: Buffer.from(body) };
  let rest = "";
  for await (const text of (await post(product, posting, signal)).setEncoding("utf8")) {
    const events = (rest + String(text)).split("\n\n");
    rest = events.pop() ?? "";
    // A comment keeps the connection alive.
    for (const event of events) if (!event.startsWith(":")) yield* textOfEvent(event.replace(/^data: /, ""));
  }
}

function* textOfEvent(data: string): Generator<string> {
  if (data === DONE) return yield DONE;
  const { error, choices } = JSON.parse(data) as {
    error?: { message: string };
    choices: { delta: { content?: string } }[];
  };
  if (error !== undefined) throw new Error(error.message);
  const content = choices[0]?.delta.content;
  if (content) yield content;
}

async function* openGrpcStream(product: Product, signal: AbortSignal): AsyncGenerator<string> {
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` });
  const headers = { authorization: `Bearer ${product.firstKey}` };
  const chunks = createClient(CompletionService, transport).stream(REQUEST, { headers, signal });
  for await (const chunk of chunks) yield* textOfChunk(chunk);
}

function* textOfChunk({ event }: CompletionChunk): Generator<string> {
  if (event.case === "partDelta" && event.value.content.case === "text") yield event.value.content.value;
  else if (event.case === "report") yield DONE;
}

/** Read by hand: the typed client's transport for HTTP/1.1 reads on whether it is asked or not. */
async function* openConnectStream(product: Product, signal: AbortSignal): AsyncGenerator<string> {
  const path = `/${CompletionService.typeName}/Stream`;
  const body = envelope(toBinary(CompletionRequestSchema, REQUEST));
  let rest = Buffer.alloc(0);
  for await (const piece of await post(product, { path, contentType: "application/connect+proto", body }, signal)) {
    rest = Buffer.concat([rest, piece as Buffer]);
    let at = 0;
    for (let end = endOfEnvelope(rest, at); end <= rest.length; end = endOfEnvelope(rest, at)) {
      const message = rest.subarray(at + ENVELOPE_BYTES, end);
      if (rest[at] === MESSAGE) yield* textOfChunk(fromBinary(CompletionChunkSchema, message));
      else throwErrorOf(message);
      at = end;
    }
    rest = rest.subarray(at);
  }
}

/** A flag and the length, before each message. */
const ENVELOPE_BYTES = 5;

/** The flag of a message; the end of a stream has another one. */
const MESSAGE = 0;

function throwErrorOf(end: Buffer): void {
  const { error } = JSON.parse(end.toString()) as { error?: { message: string } };
  if (error !== undefined) throw new Error(error.message);
}

/** A message as Connect's streams carry it: uncompressed, behind its length. */
export function envelope(message: Uint8Array): Buffer {
  const head = Buffer.alloc(ENVELOPE_BYTES);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function endOfEnvelope(bytes: Buffer, at: number): number {
  return at + ENVELOPE_BYTES + (bytes.length >= at + ENVELOPE_BYTES ? bytes.readUInt32BE(at + 1) : 0);
}

interface Posting {
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
}

/** Sends a request with the product's key; the answer is read as it is iterated. */
async function post(
  product: Product,
  { path, contentType, body }: Posting,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${product.firstKey}`, "content-type": contentType };
  const posted = request(product.url + path, { method: "POST", headers, signal });
  posted.end(body);
  const [response] = (await once(posted, "response")) as [IncomingMessage];
  return response;
}
