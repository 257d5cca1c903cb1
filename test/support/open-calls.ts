import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { Agent, fetch, type Response } from "undici";
import { PlaygroundService } from "../../gen/parley/console/v1/playground_pb.js";
import { type CompletionChunk, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Product } from "./product.ts";

/** A completion in flight, from its caller's side. */
export interface WaitingCall {
  readonly entrance: string;
  /** Resolves at the first text; never for a whole answer, which has none before its end. */
  readonly begun: Promise<void>;
  /** Resolves with the result at the end. */
  readonly ended: Promise<Ending>;
}

interface Ending {
  /** `done` for a complete answer, otherwise the failure's code, such as `unauthenticated`. */
  readonly code: string;
  readonly message: string;
  /** From `performance.now`. */
  readonly atMs: number;
}

/** Key and content of the requests. */
export interface Asked {
  readonly key: string;
  readonly model: string;
  /** Default: none. */
  readonly endUserId?: string;
  /** Requests an image as well, where the entrance supports it. Default: false. */
  readonly image?: boolean;
}

type Begin = () => void;

/** Sends requests on every HTTP entrance, whole and streamed. */
export function openHttpCalls({ url }: Pick<Product, "url">, asked: Asked): WaitingCall[] {
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  return [
    waiting("HTTP whole", () => postChat(url, asked)),
    waiting("HTTP stream", (begin) => readChat(url, asked, begin)),
    waiting("Connect whole", () => createWhole(transport, asked)),
    waiting("Connect stream", (begin) => readStream(transport, asked, begin)),
  ];
}

/** Sends requests over gRPC, whole and streamed. */
export function openGrpcCalls({ grpcPort }: Pick<Product, "grpcPort">, asked: Asked): WaitingCall[] {
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` });
  return [
    waiting("gRPC whole", () => createWhole(transport, asked)),
    waiting("gRPC stream", (begin) => readStream(transport, asked, begin)),
  ];
}

/** Sends requests in the dashboard's playground, with a session. */
export function openPlayground(
  { url }: Pick<Product, "url">,
  { cookie, keyId, ...asked }: Omit<Asked, "key"> & { readonly cookie: string; readonly keyId: string },
): WaitingCall {
  const showCookie: Interceptor = (next) => (request) => {
    request.header.set("cookie", cookie);
    return next(request);
  };
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1", interceptors: [showCookie] });
  return waiting("playground", async (begin) => {
    const stream = createClient(PlaygroundService, transport).stream({ keyId, completion: messageOf(asked) });
    for await (const { chunk } of stream) noteText(chunk, begin);
  });
}

function waiting(entrance: string, ask: (begin: Begin) => Promise<void>): WaitingCall {
  const begun = Promise.withResolvers<void>();
  const ended = ask(() => begun.resolve()).then(
    () => ({ code: "done", message: "", atMs: performance.now() }),
    (reason: unknown) => ({ ...toWords(reason), atMs: performance.now() }),
  );
  return { entrance, begun: begun.promise, ended };
}

class ChatError extends Error {
  readonly type: string;

  constructor({ type, message }: { readonly type: string; readonly message: string }) {
    super(message);
    this.type = type;
  }
}

const CODES: Readonly<Record<string, string>> = {
  authentication_error: "unauthenticated",
  permission_error: "permission_denied",
};

function toWords(reason: unknown): Pick<Ending, "code" | "message"> {
  if (reason instanceof ChatError) return { code: CODES[reason.type] ?? reason.type, message: reason.message };
  if (!(reason instanceof ConnectError)) return { code: "broken", message: String(reason) };
  const code = Code[reason.code].replace(/[A-Z]/g, (letter, at) => `${at === 0 ? "" : "_"}${letter.toLowerCase()}`);
  return { code, message: reason.rawMessage };
}

/** A connection for each request: one that is reused may be closed just then, some seconds after a failed stream. */
const dispatcher = new Agent({ pipelining: 0 });

const STATUSES: Readonly<Record<string, number>> = { authentication_error: 401, permission_error: 403 };

async function post(url: string, { key, model, image, endUserId: user }: Asked, stream: boolean): Promise<Response> {
  const messages = [{ role: "user", content: "go on" }];
  const response = await fetch(`${url}/v1/chat/completions`, {
    dispatcher,
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, stream, messages, user, ...(image === true && { modalities: ["text", "image"] }) }),
  });
  if (response.ok) return response;
  const { error } = (await response.json()) as { error: { type: string; message: string } };
  if (STATUSES[error.type] !== response.status) throw new Error(`${error.type} with ${response.status}`);
  throw new ChatError(error);
}

async function postChat(url: string, asked: Asked): Promise<void> {
  await (await post(url, asked, false)).json();
}

async function readChat(url: string, asked: Asked, begin: Begin): Promise<void> {
  const response = await post(url, asked, true);
  let rest = "";
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const events = (rest + text).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      if (event === "data: [DONE]") return;
      if (event.startsWith('data: {"error"')) {
        throw new ChatError((JSON.parse(event.slice(6)) as { error: { type: string; message: string } }).error);
      }
      if (event.includes('"content":')) begin();
    }
  }
  throw new Error("the stream was cut");
}

function messageOf({ model, image, endUserId }: Omit<Asked, "key">) {
  const modalities = image === true ? [Modality.TEXT, Modality.IMAGE] : [];
  const parts = [{ kind: { case: "text" as const, value: "go on" } }];
  return { model, modalities, messages: [{ role: Role.USER, parts }], ...(endUserId !== undefined && { endUserId }) };
}

async function createWhole(transport: Transport, asked: Asked): Promise<void> {
  const headers = { authorization: `Bearer ${asked.key}` };
  await createClient(CompletionService, transport).create(messageOf(asked), { headers });
}

async function readStream(transport: Transport, asked: Asked, begin: Begin): Promise<void> {
  const headers = { authorization: `Bearer ${asked.key}` };
  const chunks = createClient(CompletionService, transport).stream(messageOf(asked), { headers });
  for await (const chunk of chunks) noteText(chunk, begin);
}

function noteText(chunk: CompletionChunk | undefined, begin: Begin): void {
  if (chunk?.event.case === "partDelta") begin();
}
