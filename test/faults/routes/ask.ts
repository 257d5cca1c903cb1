import { create, fromJson, toBinary } from "@bufbuild/protobuf";
import { Client, Metadata, type ServiceError, status as Status } from "@grpc/grpc-js";
import { CompletionRequestSchema, ExplainRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingRequestSchema } from "../../../gen/parley/v1/embedding_pb.js";
import { GetModelRequestSchema } from "../../../gen/parley/v1/model_pb.js";
import { toRequest } from "../../entrances/scenarios/ask.ts";
import { toOpenAiJson } from "../../entrances/scenarios/callers/chat.ts";
import { type Credentials, MODEL, type RoutesWorld } from "./world.ts";

/**
 * Result of a call with regard to authorization: done, or admitted and then invalid or not found; refused as
 * unauthenticated; refused as forbidden. Anything else is described as text.
 */
export type Outcome = "done" | "wrong" | "unauthenticated" | "denied" | (string & {});

const HTTP_OUTCOMES: Readonly<Record<number, Outcome>> = {
  200: "done",
  204: "done",
  400: "wrong",
  401: "unauthenticated",
  403: "denied",
  404: "wrong",
};

const REQUEST = toRequest({ model: MODEL });
const EMBEDDING_REQUEST = { model: "gamma-embedding-3-small", inputs: [{ text: "Hello?" }] };

const IMAGE_MODEL = "beta-3-pro-image-preview";
/** One pixel. */
const PNG_URL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const EMBED_CONTENT = { content: { parts: [{ text: "Hello?" }] } };

/** Returns the result for an HTTP status. */
export function httpOutcome(status: number): Outcome {
  return HTTP_OUTCOMES[status] ?? `status ${status}`;
}

/** What is needed of `fetch`. */
export type Send = (
  url: string,
  request: { readonly method: string; readonly headers: Record<string, string>; readonly body?: string | Buffer },
) => Promise<Pick<Response, "status" | "text">>;

/** Calls a route of the HTTP entrance with a valid request. */
export async function askHttp(
  { url, send = fetch }: { readonly url: string; readonly send?: Send },
  route: string,
  credentials: Credentials,
): Promise<Outcome> {
  const [method = "", path = ""] = route.split(" ");
  const model = /embed/i.test(path) ? EMBEDDING_REQUEST.model : MODEL;
  const filled = path.replace(/\{(?:id|model)\}/, model).replace("{file}", "parley/v1/key.proto");
  const query = method === "GET" && path.startsWith("/parley.v1.") ? queryOf(path) : "";
  const response = await send(url + filled + query, {
    method,
    headers: { ...credentials, ...(method === "POST" && { "content-type": typeOf(path) }) },
    ...(method === "POST" && { body: bodyOf(path) }),
  });
  const outcome = httpOutcome(response.status);
  // A Connect stream begins with status 200 and has its error in the last message.
  const text = await response.text();
  return path.endsWith("/Stream") && outcome === "done" ? endOfStream(text) : outcome;
}

const typeOf = (path: string): string => (path.endsWith("/Stream") ? "application/connect+json" : "application/json");

function bodyOf(path: string): string | Buffer {
  if (path === "/v1/embeddings") return JSON.stringify({ model: EMBEDDING_REQUEST.model, input: "Hello?" });
  if (path.endsWith(":embedContent")) return JSON.stringify(EMBED_CONTENT);
  if (path.endsWith(":batchEmbedContents")) return JSON.stringify({ requests: [EMBED_CONTENT] });
  if (path.includes("{model}:")) return JSON.stringify({ contents: [{ parts: [{ text: "Hello?" }] }] });
  if (path.startsWith("/v1/messages"))
    return JSON.stringify({ model: MODEL, max_tokens: 100, messages: [{ role: "user", content: "Hello?" }] });
  if (path === "/v1/chat/completions" || path === "/v1/route") return JSON.stringify(toOpenAiJson(REQUEST, "whole"));
  if (path.startsWith("/v1/responses")) return JSON.stringify({ model: MODEL, input: "Hello?" });
  const completion = JSON.stringify({
    model: MODEL,
    messages: [{ role: "ROLE_USER", parts: [{ text: "Hello?" }] }],
  });
  const picture = { model: IMAGE_MODEL, prompt: "A dot" };
  if (path === "/v1/images/generations") return JSON.stringify(picture);
  if (path === "/v1/images/edits") return JSON.stringify({ ...picture, images: [{ image_url: PNG_URL }] });
  if (path.includes("EmbeddingService")) return JSON.stringify(EMBEDDING_REQUEST);
  if (path.endsWith("/Stream")) return envelope(completion);
  if (path.endsWith("/Create") || path.endsWith("/Count")) return completion;
  if (path.endsWith("/Explain")) return `{"completion":${completion}}`;
  return path.endsWith("/Get") ? JSON.stringify({ id: MODEL }) : "{}";
}

/** A Connect GET request. */
const queryOf = (path: string): string => `?encoding=json&message=${encodeURIComponent(String(bodyOf(path)))}`;

/** Calls a gRPC method with a valid request. A unary call has the wire format of a stream with one message. */
export function askGrpc(client: Client, path: string, credentials: Credentials): Promise<Outcome> {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(credentials)) metadata.set(name, value);
  const asItIs = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve) => {
    const call = client.makeServerStreamRequest(path, asItIs, asItIs, messageOf(path), metadata);
    call.on("data", () => {
      resolve("done");
      call.cancel();
    });
    call.on("error", ({ code, details }: ServiceError) => resolve(GRPC_OUTCOMES[code] ?? `${Status[code]} ${details}`));
    call.on("end", () => resolve("done"));
  });
}

const GRPC_OUTCOMES: Readonly<Record<number, Outcome>> = {
  [Status.INVALID_ARGUMENT]: "wrong",
  [Status.NOT_FOUND]: "wrong",
  [Status.UNAUTHENTICATED]: "unauthenticated",
  [Status.PERMISSION_DENIED]: "denied",
};

function messageOf(path: string): Buffer {
  if (path.endsWith("/Explain"))
    return Buffer.from(toBinary(ExplainRequestSchema, create(ExplainRequestSchema, { completion: REQUEST })));
  if (path.includes("CompletionService")) return Buffer.from(toBinary(CompletionRequestSchema, REQUEST));
  if (path.includes("EmbeddingService"))
    return Buffer.from(toBinary(EmbeddingRequestSchema, fromJson(EmbeddingRequestSchema, EMBEDDING_REQUEST)));
  if (path.endsWith("ModelService/Get"))
    return Buffer.from(toBinary(GetModelRequestSchema, create(GetModelRequestSchema, { id: MODEL })));
  return Buffer.alloc(0);
}

/** Calls a dashboard service with a JSON message. Reads only the first message of an endless stream. */
export async function askConsole(
  { product }: RoutesWorld,
  method: string,
  { message, streams, credentials }: { message: object; streams: boolean; credentials: Credentials },
): Promise<Outcome> {
  const body = JSON.stringify(message);
  const leaving = new AbortController();
  const response = await fetch(`${product.url}/parley.console.v1.${method}`, {
    method: "POST",
    headers: { ...credentials, "content-type": streams ? "application/connect+json" : "application/json" },
    body: streams ? envelope(body) : body,
    signal: leaving.signal,
  });
  if (!streams) {
    await response.arrayBuffer();
    return httpOutcome(response.status);
  }
  if (response.status !== 200) return httpOutcome(response.status);
  const { value } = await response.body!.getReader().read();
  leaving.abort();
  return endOfStream(Buffer.from(value ?? []).toString("latin1"));
}

const CONNECT_OUTCOMES: Readonly<Record<string, Outcome>> = {
  invalid_argument: "wrong",
  not_found: "wrong",
  unauthenticated: "unauthenticated",
  permission_denied: "denied",
};

/** Returns the result in the last message of a stream; done without an error, or if it continues. */
function endOfStream(text: string): Outcome {
  const code = /\{"error":\{"code":"(\w+)"/.exec(text)?.[1];
  return code === undefined ? "done" : (CONNECT_OUTCOMES[code] ?? code);
}

/** Encodes one message of a Connect stream. */
function envelope(json: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(json), 1);
  return Buffer.concat([head, Buffer.from(json)]);
}
