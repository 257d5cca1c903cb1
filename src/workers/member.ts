import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Assignment, ParentCalls, Started, WorkerCalls } from "./calls.ts";
import { Channel, type Handlers } from "./channel.ts";

/** How a process ended: by itself with a code, or by a signal. Both null: it could not even be started. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

// The published program is JavaScript, the sources are not.
const PROGRAM = fileURLToPath(new URL(`./worker-program${extname(import.meta.url)}`, import.meta.url));

/** One worker process, as its parent sees it. */
export class Member {
  /** Unlike its number never used again. */
  readonly name: string;
  readonly assignment: Assignment;
  readonly pid: number | undefined;
  /** When its last words have been heard, too. */
  readonly ended: Promise<Ending>;
  readonly startedAtMs = performance.now();
  /** What it is; undefined until it serves. */
  serves: Started | undefined;
  readonly #process: Worker["process"];
  readonly #channel: Channel<WorkerCalls>;

  /** Starts the process. `handlers` answer what it asks. */
  constructor(assignment: Assignment, handlers: (member: Member) => Handlers<ParentCalls>) {
    this.assignment = assignment;
    cluster.setupPrimary({ exec: PROGRAM, args: [String(assignment.number)] });
    const worker = cluster.fork();
    closeWhenLost(worker);
    this.name = `${assignment.number}.${worker.id}`;
    this.#process = worker.process;
    this.pid = worker.process.pid;
    this.ended = endingOf(worker);
    this.#channel = new Channel<WorkerCalls>(worker.process, handlers(this));
  }

  /** Lets it begin to serve. Rejects with what keeps it from that. */
  async start(): Promise<Started> {
    const started = this.#channel.ask("start", this.assignment);
    const ended = this.ended.then((ending): never => {
      throw new Error(`it ended ${describeEnding(ending)}`);
    });
    this.serves = await Promise.race([started, ended]);
    return this.serves;
  }

  readonly ask: Channel<WorkerCalls>["ask"] = (...call) => this.#channel.ask(...call);

  readonly tell: Channel<WorkerCalls>["tell"] = (...call) => this.#channel.tell(...call);

  /** Lets it end by itself: nothing is left for it to do. */
  release(): void {
    if (this.#process.connected) this.#process.disconnect();
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

async function endingOf(worker: Worker): Promise<Ending> {
  // The system may have no room for another process: then there is no exit either.
  const notBegun = new Promise<Ending>((resolve) => {
    worker.on("error", () => {
      if (worker.process.pid === undefined) resolve({ code: null, signal: null });
    });
  });
  const exited = once(worker, "exit") as Promise<[Ending["code"], Ending["signal"]]>;
  const ending = await Promise.race([notBegun, exited.then(([code, signal]) => ({ code, signal }))]);
  if (worker.process.connected) await once(worker.process, "disconnect");
  return ending;
}

/** In words, for the log and for people. */
export function describeEnding({ code, signal }: Ending): string {
  if (signal !== null) return `by ${signal}`;
  return code === null ? "before it began: the system starts no more processes" : `with code ${code}`;
}

/** How node:cluster says that a connection comes with a message. */
interface Handover {
  readonly cmd: "NODE_CLUSTER";
  readonly act: "newconn";
  readonly seq: number;
}

/** A connection that nobody reads. */
interface Connection {
  close(): void;
}

type Send = (message: object, connection?: Connection, ...rest: readonly unknown[]) => boolean;

/**
 * Closes the connections that were on their way to a worker when it died. node:cluster keeps them open in the parent and
 * forgets them: their callers would wait until their patience is over, and the parent would run out of file descriptors.
 * Looks at the library's own messages, for want of another way; should they change, this does nothing.
 */
function closeWhenLost(worker: Worker): void {
  const underWay = new Map<number, Connection>();
  const child = worker.process;
  const send = child.send.bind(child) as unknown as Send;
  const noting: Send = (message, connection, ...rest) => {
    if (connection !== undefined && isHandover(message)) underWay.set(message.seq, connection);
    return send(message, connection, ...rest);
  };
  child.send = noting as typeof child.send;
  child.on("internalMessage", ({ ack }: { readonly ack?: number }) => {
    // From here on it is the worker's, or goes to another one.
    if (ack !== undefined) underWay.delete(ack);
  });
  const close = (): void => {
    for (const connection of underWay.values()) connection.close();
    underWay.clear();
  };
  worker.once("disconnect", close);
  worker.once("exit", close);
}

function isHandover(message: object): message is Handover {
  const { cmd, act, seq } = message as Partial<Handover>;
  return cmd === "NODE_CLUSTER" && act === "newconn" && typeof seq === "number";
}
