import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A complete request as a server received it. */
export interface Received {
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** Undefined when the text is no JSON. */
  readonly json: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Returns a request listener that reads the whole request and passes it to `reply`. If `reply` throws, the response is
 * a 500 with the error.
 */
export function replyWith(reply: (received: Received, response: ServerResponse) => void) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString();
      try {
        reply({ path: request.url ?? "", headers: request.headers, text, json: parse(text) }, response);
      } catch (error) {
        sendJson(response, 500, { error: { message: String(error) } });
      }
    });
  };
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown, headers: object = {}): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(JSON.stringify(body));
}

/** Sends server-sent events: objects as JSON, texts as they are. */
export function sendEvents(response: ServerResponse, events: readonly unknown[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  response.end();
}

/** Listens on a free port of the loopback address, and returns it. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

export function close(server: Server): void {
  server.closeAllConnections();
  server.close();
}
