import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import {
  anthropicWire,
  geminiWire,
  openAiWire,
  type ScriptedAnswer,
  type UpstreamDialect,
} from "./upstream-dialects.ts";
import { geminiEmbeddings, openAiEmbeddings } from "./upstream-embeddings.ts";

/** One request that reached the upstream, with its response. */
export interface ScriptedCall {
  readonly dialect: UpstreamDialect;
  readonly streamed: boolean;
  readonly response: ServerResponse;
}

/** Behaviour of the upstream for one call. */
export type Act = (call: ScriptedCall) => void;

/** One request as the upstream received it. */
interface SeenCall {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
  /** `open` until the response is complete, or the connection closed before. */
  state: "open" | "answered" | "closed";
}

/**
 * A scripted provider on a real socket for three dialects and the embeddings of two, selected by the path. Any model name is valid; each has
 * its own script.
 */
export interface ScriptedUpstream {
  /** `http://127.0.0.1:…`, without a path. */
  readonly url: string;
  /** Sets the acts for the calls of a model; the last one is repeated. Calls without a script get a 418. */
  script(model: string, acts: readonly Act[]): void;
  /** Returns the calls of a model, in order. */
  calls(model: string): readonly SeenCall[];
  /** Number of open connections. */
  readonly openSockets: number;
  close(): Promise<void>;
}

/** Starts an upstream on a free loopback port. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const scripts = new Map<string, readonly Act[]>();
  const seen = new Map<string, SeenCall[]>();
  const sockets = new Set<Socket>();
  const perform = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    const { model, dialect, streamed } = identify(request.url!, body);
    const call: SeenCall = { path: request.url!, headers: request.headers, body, state: "open" };
    const calls = seen.get(model) ?? [];
    seen.set(model, [...calls, call]);
    response.once("close", () => {
      call.state = response.writableFinished ? "answered" : "closed";
    });
    const acts = scripts.get(model) ?? [];
    const act = acts[calls.length] ?? acts.at(-1) ?? refuses(418);
    act({ dialect, streamed, response });
  };
  // An aborted or invalid request is not a call; its connection is closed.
  const server = createServer((request, response) => void perform(request, response).catch(() => response.destroy()));
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: (model, acts) => void scripts.set(model, acts),
    calls: (model) => seen.get(model) ?? [],
    get openSockets() {
      return sockets.size;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const pieces: Buffer[] = [];
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString("utf8")) as Record<string, unknown>;
}

function identify(
  path: string,
  body: Record<string, unknown>,
): { model: string; dialect: UpstreamDialect; streamed: boolean } {
  const gemini = /^\/v1beta\/models\/([^/:]+):(?:(stream)?generateContent|(batchEmbedContents))/i.exec(path);
  if (gemini !== null) {
    const dialect = gemini[3] === undefined ? geminiWire : geminiEmbeddings;
    return { model: decodeURIComponent(gemini[1]!), dialect, streamed: gemini[2] !== undefined };
  }
  const dialect = OF_PATH[path] ?? openAiWire;
  return { model: String(body["model"]), dialect, streamed: body["stream"] === true };
}

/** Paths of other dialects than chat completions. */
const OF_PATH: Readonly<Record<string, UpstreamDialect>> = {
  "/v1/messages": anthropicWire,
  "/v1/embeddings": openAiEmbeddings,
};

const EVENT_STREAM = { "content-type": "text/event-stream" } as const;
const JSON_TYPE = { "content-type": "application/json" } as const;

/** Responds, whole or streamed as requested. */
export function says(text: string, answer: Omit<ScriptedAnswer, "text"> = {}): Act {
  return (call) => {
    const { dialect, streamed, response } = call;
    const all = { text, ...answer };
    if (!streamed) return sendJson(call, dialect.whole(all));
    const { content, ending } = dialect.events(all);
    response.writeHead(200, EVENT_STREAM).write(content);
    response.end(ending);
  };
}

/** Responds with an error status. */
export function refuses(status: number, message = "Scripted.", headers: Record<string, string> = {}): Act {
  return ({ dialect, response }) =>
    void response.writeHead(status, { ...JSON_TYPE, ...headers }).end(JSON.stringify(dialect.error(status, message)));
}

/** Responds with these bytes. */
export function sends(status: number, contentType: string, body: string): Act {
  return ({ response }) => void response.writeHead(status, { "content-type": contentType }).end(body);
}

/** Accepts the request and never responds. */
export const staysSilent: Act = () => {};

/** Closes the connection without a response. */
export const hangsUp: Act = ({ response }) => void response.socket?.destroy();

/** Resets the connection without a response. */
export const resets: Act = ({ response }) => void response.socket?.resetAndDestroy();

/** How a started response breaks. */
export type Breakage =
  | "close"
  | "reset"
  /** The body ends as if it were complete, without a finish reason. */
  | "end"
  /** An error of status 529 follows. */
  | "error"
  /** Garbage follows. */
  | "garbage"
  /** Nothing follows. */
  | "silence";

/** Starts a response with `text` and then breaks. For a whole response, half of its bytes are sent. */
export function begins(text: string, breakage: Breakage): Act {
  return (call) => {
    const { dialect, streamed, response } = call;
    if (!streamed && breakage === "end") return sendJson(call, dialect.unfinished({ text }));
    if (!streamed && breakage === "error") return sendJson(call, dialect.error(529, "Scripted."));
    const whole = JSON.stringify(dialect.whole({ text }));
    response.writeHead(200, streamed ? EVENT_STREAM : JSON_TYPE);
    const beginning = streamed ? dialect.events({ text }).content : whole.slice(0, whole.length / 2);
    // Waits until the sent bytes have been delivered.
    response.write(beginning, () => breakOff[breakage](call));
  };
}

function sendJson({ response }: ScriptedCall, body: object): void {
  response.writeHead(200, JSON_TYPE).end(JSON.stringify(body));
}

const breakOff: Readonly<Record<Breakage, Act>> = {
  close: ({ response }) => response.socket?.destroySoon(),
  reset: ({ response }) => response.socket?.resetAndDestroy(),
  end: ({ response }) => void response.end(),
  error: ({ dialect, response }) => void response.end(dialect.errorEvent(529, "Scripted.")),
  garbage: ({ response }) => void response.end("data: {nonsense\n\ndata: {nonsense\n\n"),
  silence: () => {},
};
