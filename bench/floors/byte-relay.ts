// Floor: a byte relay on node:http and undici's dispatch. It parses no content; optionally it parses and writes whole
// bodies, the minimum for a server that reads requests.
import { createServer, type ServerResponse } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { reportReady } from "../child.ts";

const upstream = new Pool(`http://127.0.0.1:${process.argv[2]}`);
const CREDENTIAL = ["content-type", "application/json", "x-api-key", "bench", "anthropic-version", "2023-06-01"];

const carry = process.argv[3] === "json" ? rewriteJson : (body: Buffer): Buffer => body;

function rewriteJson(body: Buffer): Buffer {
  return Buffer.from(JSON.stringify(JSON.parse(body.toString())));
}

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => relay(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces), response));
});

function relay(body: Buffer, response: ServerResponse): void {
  const options = { method: "POST", path: "/v1/messages", headers: CREDENTIAL, body: carry(body) } as const;
  upstream.dispatch(options, new Relayed(response));
}

/** Writes answers of known length at once, streams piece by piece. */
class Relayed implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #held: Buffer[] = [];
  #status = 0;
  #isStream = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {}

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    this.#status = status;
    this.#isStream = headers["content-length"] === undefined;
    if (!this.#isStream) return;
    this.#response.writeHead(status, ["content-type", "text/event-stream"]);
    this.#response.on("drain", () => controller.resume());
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (!this.#isStream) this.#held.push(piece);
    else if (!this.#response.write(piece)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#isStream) return void this.#response.end();
    const body = carry(this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held));
    const headers = ["content-type", "application/json", "content-length", String(body.length)];
    this.#response.writeHead(this.#status, headers).end(body);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#response.destroy(error);
  }
}

reportReady(server);
