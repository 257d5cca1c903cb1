import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import { type CallId, type CallPlan, drawCallPlan } from "./call-plan.ts";
import type { WireName } from "./numbered-wire.ts";
import { type Step, toScript } from "./script.ts";

/** One call that reached the server. */
export interface JournaledCall {
  readonly plan: CallPlan;
  readonly wire: WireName;
  readonly streamed: boolean;
  readonly model: string;
  /** `open` until the script has run, or the caller has closed the connection. */
  state: "open" | "played" | "left";
  /** Duration of the script. */
  tookMs: number;
}

export interface FaultServerOptions {
  readonly seed: number;
  /** Default: `drawCallPlan`. */
  readonly planOf?: (id: CallId) => CallPlan;
}

/**
 * A provider for all three dialects on real sockets that follows a plan for each call. The prompt contains the
 * request's number, as `promptOf` writes it.
 */
export interface FaultServer {
  /** `http://127.0.0.1:…`, without a path. */
  readonly url: string;
  /** Returns the calls of a request, in order. */
  calls(request: number): readonly JournaledCall[];
  /** Resolves with the first call of a request. */
  called(request: number): Promise<void>;
  /** Calls whose script is still running. */
  readonly openCalls: number;
  readonly openSockets: number;
  /** Closes idle connections. */
  closeIdle(): void;
  close(): Promise<void>;
}

/** Returns the prompt of a request, which identifies it for the server. */
export function promptOf(request: number): string {
  return `[request ${request}] Say something.`;
}

interface HttpRequest {
  readonly path: string;
  readonly body: string;
}

/** Starts a server on a free loopback port. */
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
    // "close" follows.
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

/** Parses the requests of a connection, in sequence. */
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

/** Parses the first request, and returns its size in bytes; undefined while it is incomplete. */
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

/** Runs a script; returns false if the connection was closed before its end. */
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
        // Not `once` of node:events, which rejects after a reset.
        await new Promise((resolve) => socket.once("close", resolve));
        break;
      case "reset":
        // All bytes are passed to the kernel before the connection ends.
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

/** Resolves when the kernel has the bytes, or the connection is closed. */
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
