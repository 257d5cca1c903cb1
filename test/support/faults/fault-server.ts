import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import { type CallId, type CallPlan, drawCallPlan } from "./call-plan.ts";
import type { WireName } from "./numbered-wire.ts";
import { type Step, toScript } from "./script.ts";

/** One call that has reached the server. */
export interface JournaledCall {
  readonly plan: CallPlan;
  readonly wire: WireName;
  readonly streamed: boolean;
  readonly model: string;
  /** `open` until the script is played, or the caller has left before. */
  state: "open" | "played" | "left";
  /** How long it was played. */
  tookMs: number;
}

export interface FaultServerOptions {
  readonly seed: number;
  /** Default: `drawCallPlan`. */
  readonly planOf?: (id: CallId) => CallPlan;
}

/**
 * A provider of all three dialects on real sockets that plays a plan for each call. The request's number stands in its
 * prompt, as `promptOf` writes it.
 */
export interface FaultServer {
  /** `http://127.0.0.1:…`, without a path. */
  readonly url: string;
  /** The calls that a request has led to, in order. */
  calls(request: number): readonly JournaledCall[];
  /** Resolves when a request has led to its first call. */
  called(request: number): Promise<void>;
  /** Calls that are neither played to the end nor left. */
  readonly openCalls: number;
  readonly openSockets: number;
  /** Closes the connections on which no answer is under way. */
  closeIdle(): void;
  close(): Promise<void>;
}

/** The prompt of a request, by which the server knows it. */
export function promptOf(request: number): string {
  return `[request ${request}] Say something.`;
}

interface HttpRequest {
  readonly path: string;
  readonly body: string;
}

/** Starts one on a free loopback port. */
export async function startFaultServer({ seed, planOf = drawCallPlan }: FaultServerOptions): Promise<FaultServer> {
  const journal = new Map<number, JournaledCall[]>();
  const waiting = new Map<number, () => void>();
  const sockets = new Set<Socket>();
  const busy = new Set<Socket>();
  let openCalls = 0;

  const answer = async (socket: Socket, request: HttpRequest): Promise<void> => {
    const number = Number(/\[request (\d+)\]/.exec(request.body)?.[1]);
    const calls = journal.get(number) ?? [];
    journal.set(number, calls);
    const { wire, streamed, model } = identify(request);
    const plan = planOf({ seed, request: number, call: calls.length });
    const call: JournaledCall = { plan, wire, streamed, model, state: "open", tookMs: 0 };
    calls.push(call);
    waiting.get(number)?.();
    openCalls += 1;
    const beganMs = performance.now();
    const played = await play(socket, toScript(plan, { wire, streamed }));
    call.state = played ? "played" : "left";
    call.tookMs = performance.now() - beganMs;
    openCalls -= 1;
  };

  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // "close" follows, which is all that matters.
    socket.on("error", () => undefined);
    readRequests(socket, async (request) => {
      busy.add(socket);
      await answer(socket, request);
      busy.delete(socket);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: (request) => journal.get(request) ?? [],
    called: (request) =>
      journal.has(request)
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.set(request, () => {
              waiting.delete(request);
              resolve();
            });
          }),
    get openCalls() {
      return openCalls;
    },
    get openSockets() {
      return sockets.size;
    },
    closeIdle() {
      for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Hands over the requests of a connection, one after the other. */
function readRequests(socket: Socket, take: (request: HttpRequest) => Promise<void>): void {
  let arrived = Buffer.alloc(0);
  let isTaking = false;
  const takeAll = async (): Promise<void> => {
    if (isTaking) return;
    isTaking = true;
    for (let next = readRequest(arrived); next !== undefined; next = readRequest(arrived)) {
      arrived = arrived.subarray(next.size);
      await take(next.request);
    }
    isTaking = false;
  };
  socket.on("data", (bytes: Buffer) => {
    arrived = Buffer.concat([arrived, bytes]);
    void takeAll();
  });
}

/** The first request of what has arrived, and its size in bytes; undefined as long as it is not complete. */
function readRequest(arrived: Buffer): { readonly request: HttpRequest; readonly size: number } | undefined {
  const headEnd = arrived.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const head = arrived.toString("latin1", 0, headEnd);
  const size = headEnd + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  if (arrived.length < size) return undefined;
  return { request: { path: head.split(" ")[1] ?? "", body: arrived.toString("utf8", headEnd + 4, size) }, size };
}

function identify({ path, body }: HttpRequest): Pick<JournaledCall, "wire" | "streamed" | "model"> {
  const gemini = /^\/v1beta\/models\/([^/:]+):(stream)?generateContent/i.exec(path);
  if (gemini !== null)
    return { wire: "gemini", model: decodeURIComponent(gemini[1]!), streamed: gemini[2] !== undefined };
  const asked = JSON.parse(body) as { readonly model: string; readonly stream?: boolean };
  const wire = path === "/v1/messages" ? "anthropic" : "openai";
  return { wire, model: asked.model, streamed: asked.stream === true };
}

/** Plays a script; false when the other side has left before its end. */
async function play(socket: Socket, steps: readonly Step[]): Promise<boolean> {
  for (const step of steps) {
    if (socket.destroyed) return false;
    switch (step.kind) {
      case "write":
        await writeAll(socket, step.bytes);
        break;
      case "wait":
        await (step.ms === 0 ? turn() : delay(step.ms));
        break;
      case "hang":
        // Not by `once` of events, which rejects when the other side resets the connection.
        await new Promise((resolve) => socket.once("close", resolve));
        break;
      case "reset":
        // What was written has left for the system before the connection ends.
        await writeAll(socket, Buffer.alloc(0));
        socket.resetAndDestroy();
        return true;
      case "close":
        socket.end();
        return true;
      case "keep":
    }
  }
  return !socket.destroyed;
}

/** Resolves when the system has taken the bytes, or the connection is gone. */
function writeAll(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      socket.off("close", done);
      resolve();
    };
    socket.once("close", done);
    socket.write(bytes, done);
  });
}
