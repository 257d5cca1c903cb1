import assert from "node:assert/strict";
import {
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Code, ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { type Message, ParleyClient, ParleyError, userText } from "@parley/client";

/** The gateway under test, see the runner of the client packages. */
export const gateway = {
  address: variable("PARLEY_GRPC"),
  apiKey: variable("PARLEY_API_KEY"),
  upstream: variable("PARLEY_UPSTREAM"),
};

/** A client with the package's defaults. */
export const parley = new ParleyClient({ address: gateway.address, apiKey: gateway.apiKey, plaintext: true });

/** A model of the simulator. */
export const MODEL = "alpha-haiku-4.5";

/** The bytes of the picture of `painter`, which are a repeated word. */
export const PICTURE = Buffer.alloc(6 * 1024 * 1024, "parley");

/** A request that says a text to a model. */
export function say(text: string, model = MODEL): { model: string; messages: Message[] } {
  return { model, messages: [userText(text)] };
}

/** The error of a call that has to fail. */
export async function failure(call: Promise<unknown>): Promise<ParleyError> {
  const error: unknown = await call.then(
    () => assert.fail("The call succeeded."),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ParleyError, `not a ParleyError: ${String(error)}`);
  return error;
}

/** The states of a model's upstream calls, in order. */
export async function upstreamCalls(model: string): Promise<string[]> {
  return (await fetch(`${gateway.upstream}/calls/${model}`)).json() as Promise<string[]>;
}

/** Waits until the last upstream call of a model is closed, for at most 2 s. */
export async function upstreamCloses(model: string): Promise<void> {
  const deadline = Date.now() + 2000;
  while ((await upstreamCalls(model)).at(-1) !== "closed") {
    assert.ok(Date.now() < deadline, `the upstream call of ${model} is not closed`);
    await delay(20);
  }
}

/** Answers a call in place of the routes, and returns whether it did. */
export type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean;

/** Refuses calls with a status and metadata in trailers without a message, as the gateway does. */
export function refuse(stream: ServerHttp2Stream, code: Code, metadata: Record<string, string> = {}): true {
  const headers = { "content-type": "application/grpc+proto", "grpc-status": String(code), ...metadata };
  stream.respond(headers, { endStream: true });
  return true;
}

/** A gRPC server for what the gateway does not do on demand, and a client of it. */
export async function startServer(
  { answer = () => false, routes = () => undefined }: { answer?: Answer; routes?: (router: ConnectRouter) => void },
  tls?: { key: string; cert: string },
) {
  const handler = connectNodeAdapter({ routes });
  const server = tls === undefined ? createServer() : createSecureServer(tls);
  const calls: IncomingHttpHeaders[] = [];
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session: ServerHttp2Session) => sessions.add(session));
  server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
    calls.push(request.headers);
    if (!answer(request.stream, request.headers)) handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const address = `localhost:${(server.address() as AddressInfo).port}`;
  return {
    address,
    client: new ParleyClient({
      address,
      apiKey: "sk_test",
      ...(tls === undefined ? { plaintext: true } : { ca: tls.cert }),
    }),
    /** The headers of the calls that came, in order. */
    calls,
    stop() {
      for (const session of sessions) session.destroy();
      server.close();
    },
  };
}

function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set.`);
  return value;
}
