import { toBinary } from "@bufbuild/protobuf";
import { Client, Metadata, type ServiceError, status as Status } from "@grpc/grpc-js";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { GetModelRequestSchema } from "../../../gen/parley/v1/model_pb.js";
import { create } from "@bufbuild/protobuf";
import { toOpenAiJson, toRequest } from "../../entrances/scenarios/ask.ts";
import { type Credentials, MODEL, type RoutesWorld } from "./world.ts";

/**
 * How a call ended, as far as it is about who called: done, or let in and then found to be wrong or about nothing;
 * refused because nobody known called; refused because of who called. Anything else is said in words.
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

/** What this status says. */
export function httpOutcome(status: number): Outcome {
  return HTTP_OUTCOMES[status] ?? `status ${status}`;
}

/** Calls a route of the HTTP entrance with a request that is right, whoever calls. */
export async function askHttp({ product }: RoutesWorld, route: string, credentials: Credentials): Promise<Outcome> {
  const [method = "", path = ""] = route.split(" ");
  const filled = path.replace("{id}", MODEL).replace("{file}", "parley/v1/key.proto");
  const response = await fetch(product.url + filled, {
    method,
    headers: { ...credentials, ...(method === "POST" && { "content-type": typeOf(path) }) },
    ...(method === "POST" && { body: bodyOf(path) }),
  });
  const outcome = httpOutcome(response.status);
  // A stream of the Connect protocol begins with 200 and says at its end how it went.
  const text = await response.text();
  return path.endsWith("/Stream") && outcome === "done" ? endOfStream(text) : outcome;
}

const typeOf = (path: string): string => (path.endsWith("/Stream") ? "application/connect+json" : "application/json");

function bodyOf(path: string): string | Buffer {
  if (path === "/v1/chat/completions") return JSON.stringify(toOpenAiJson(REQUEST, "whole"));
  const completion = JSON.stringify({
    model: MODEL,
    messages: [{ role: "ROLE_USER", content: [{ text: "Hello?" }] }],
  });
  if (path.endsWith("/Stream")) return envelope(completion);
  if (path.endsWith("/Create")) return completion;
  return path.endsWith("/Get") ? JSON.stringify({ id: MODEL }) : "{}";
}

/** Calls a method over gRPC with a request that is right. One that answers once is a stream of one message on the wire. */
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
  if (path.includes("CompletionService")) return Buffer.from(toBinary(CompletionRequestSchema, REQUEST));
  if (path.endsWith("ModelService/Get"))
    return Buffer.from(toBinary(GetModelRequestSchema, create(GetModelRequestSchema, { id: MODEL })));
  return Buffer.alloc(0);
}

/** Calls a service of the dashboard with a message in JSON. Of a stream that goes on, the first message is enough. */
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

/** What the end of a stream says; one without an error, or that goes on, is done. */
function endOfStream(text: string): Outcome {
  const code = /\{"error":\{"code":"(\w+)"/.exec(text)?.[1];
  return code === undefined ? "done" : (CONNECT_OUTCOMES[code] ?? code);
}

/** One message of a stream of the Connect protocol. */
function envelope(json: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(json), 1);
  return Buffer.concat([head, Buffer.from(json)]);
}
