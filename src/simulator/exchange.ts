import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { Refusal } from "./answer.ts";
import { anthropic } from "./anthropic/dialect.ts";
import { type Dialect, type Head, readHeader } from "./dialect.ts";
import type { Fault, FaultBook } from "./faults.ts";
import { gemini } from "./gemini/dialect.ts";
import type { JournalEntry, JournalKeeper } from "./journal.ts";
import { openai } from "./openai/dialect.ts";
import { performCompletion } from "./performance.ts";
import { findFaultDirective } from "./prompt.ts";
import { type PaceOptions, Sender, startPace } from "./sender.ts";

export interface ExchangeParts {
  readonly pace: PaceOptions;
  readonly faults: FaultBook;
  readonly journal: JournalKeeper;
}

const FAULT_HEADER = "x-simulator-fault";

function readHead(request: IncomingMessage): Head {
  const [path = "/", query = ""] = (request.url ?? "/").split(/\?(.*)/su);
  return { method: request.method ?? "GET", path, query: new URLSearchParams(query), headers: request.headers };
}

/**
 * Selects the dialect by path and headers. All three have `/v1/models`, which only headers distinguish;
 * `…:generateContent` is Gemini's.
 */
function chooseDialect(head: Head): Dialect {
  if (/^\/v1beta\/|^\/v1\/models\/[^/]+:\w*Contents?$/u.test(head.path)) return gemini;
  if (readHeader(head, "x-goog-api-key") !== undefined) return gemini;
  if (head.path.startsWith("/v1/messages") || readHeader(head, "anthropic-version") !== undefined) return anthropic;
  return openai;
}

interface JsonAnswer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: unknown;
}

function sendJson(response: ServerResponse, { status, headers, body }: JsonAnswer): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": bytes.length,
  });
  response.end(bytes);
}

/** Returns a signal that aborts when the client disconnects before the response is complete. */
function watchReader(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort(new Error("the client has disconnected"));
  });
  return controller.signal;
}

/** Creates the request handler of one simulator. Its promise never rejects. */
export function createExchange(
  parts: ExchangeParts,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const head = readHead(request);
    const dialect = chooseDialect(head);
    const entry = parts.journal.open(dialect.name, head.method, head.path);
    const requestId = `req_sim${String(parts.journal.seen).padStart(20, "0")}`;
    const signal = watchReader(response);
    response.once("close", () => parts.journal.close(entry, response.writableFinished ? "finished" : "left"));
    for (const [name, value] of Object.entries(dialect.identify(requestId))) {
      if (value !== undefined) response.setHeader(name, value);
    }
    try {
      await answer({ request, response, head, dialect, entry, signal }, parts);
    } catch (error) {
      if (!signal.aborted) refuse(response, (refusal) => dialect.encodeRefusal(refusal, requestId), toRefusal(error));
    }
    if (response.headersSent) entry.status = response.statusCode;
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly head: Head;
  readonly dialect: Dialect;
  readonly entry: JournalEntry;
  readonly signal: AbortSignal;
}

async function answer(
  { request, response, head, dialect, entry, signal }: Exchange,
  parts: ExchangeParts,
): Promise<void> {
  const endpoint = dialect.find(head);
  if (!endpoint) throw new Refusal(404, `Not found: ${head.path}`);
  if (endpoint.method !== head.method) throw new Refusal(405, `Method ${head.method} is not allowed here.`);
  dialect.authenticate(head);
  if (endpoint.kind === "look-up") return sendJson(response, { status: 200, headers: {}, body: endpoint.answer() });

  const order = endpoint.read(await readJson(request));
  entry.model = order.prompt.model;
  const fault = takeFault(parts.faults, {
    header: readHeader(head, FAULT_HEADER),
    model: order.prompt.model,
    directive: findFaultDirective(order.prompt),
  });
  if (fault) entry.fault = fault.text;
  const sender = new Sender(response, signal, fault?.drip);
  return performCompletion({ order, fault, sender, pace: startPace(parts.pace, signal) });
}

function takeFault(faults: FaultBook, sources: Parameters<FaultBook["take"]>[0]): Fault | undefined {
  try {
    return faults.take(sources);
  } catch (error) {
    if (error instanceof SyntaxError) throw new Refusal(400, `The simulator cannot read this fault: ${error.message}.`);
    throw error;
  }
}

function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  // Stack overflow on a deeply nested body.
  if (error instanceof RangeError) return new Refusal(400, "The request body is nested too deeply.");
  return new Refusal(500, "The simulator itself failed on this request.");
}

function refuse(
  response: ServerResponse,
  encode: (refusal: Refusal) => Omit<JsonAnswer, "status">,
  refusal: Refusal,
): void {
  // After the headers an error can only be signalled by closing the connection.
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // Discards the rest of an oversize body: closing the socket would reset the connection before the response arrives.
  response.req.resume();
  sendJson(response, { status: refusal.status, ...encode(refusal) });
}

export const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** Reads the body as JSON. Throws `Refusal`: 413 above MAX_BODY_BYTES, 400 if it is not JSON in UTF-8. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const tooLarge = new Refusal(413, "Request exceeds the maximum size");
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) throw tooLarge;
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  // By default, leaving the loop would destroy the socket that the error response needs.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_BODY_BYTES) throw tooLarge;
    chunks.push(chunk);
  }
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks)));
    return parsed;
  } catch {
    throw new Refusal(400, "The request body is not valid JSON.");
  }
}
