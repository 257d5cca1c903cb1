import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { clusterProgram } from "../installation/own-programs.ts";
import type { Assignment, ParentCalls, Started, WorkerCalls } from "./calls.ts";
import { Channel, type Handlers } from "./channel.ts";

/** How a process ended: by itself with a code, or by a signal. Both null: it could not be started. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const PROGRAM = clusterProgram("worker-program", import.meta.url);

/** One worker process, as seen by its parent. */
export class Member {
  /** Unique over the life of the parent, unlike the worker's number. */
  readonly name: string;
  readonly assignment: Assignment;
  readonly pid: number | undefined;
  /** Resolves after the process has exited and its last message has been received. */
  readonly ended: Promise<Ending>;
  readonly startedAtMs = performance.now();
  /** The started worker; undefined until it serves. */
  serves: Started | undefined;
  readonly #process: Worker["process"];
  readonly #channel: Channel<WorkerCalls>;

  /** Starts the process. `handlers` answer its calls. */
  constructor(assignment: Assignment, handlers: (member: Member) => Handlers<ParentCalls>) {
    this.assignment = assignment;
    cluster.setupPrimary({ ...PROGRAM, args: [String(assignment.number)] });
    const worker = cluster.fork();
    closeWhenLost(worker);
    this.name = `${assignment.number}.${worker.id}`;
    this.#process = worker.process;
    this.pid = worker.process.pid;
    this.ended = endingOf(worker);
    this.#channel = new Channel<WorkerCalls>(worker.process, handlers(this));
  }

  /** Makes the process serve. Rejects with the reason when it cannot. */
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

  /** Disconnects the channel, which lets a drained process exit. */
  release(): void {
    if (this.#process.connected) this.#process.disconnect();
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

async function endingOf(worker: Worker): Promise<Ending> {
  // fork() can fail for want of resources; then there is no exit event.
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

/** Describes an ending for the log and for people. */
function describeEnding({ code, signal }: Ending): string {
  if (signal !== null) return `by ${signal}`;
  return code === null ? "before it began: the operating system could not start the process" : `with code ${code}`;
}

/** The message by which node:cluster hands a connection to a worker. */
interface Handover {
  readonly cmd: "NODE_CLUSTER";
  readonly act: "newconn";
  readonly seq: number;
}

/** Handle of a connection that no process reads yet. */
interface Connection {
  close(): void;
}

type Send = (message: object, connection?: Connection, ...rest: readonly unknown[]) => boolean;

/**
 * Closes connections that were being handed to a worker when it died. node:cluster keeps them open in the parent and forgets
 * them: their callers would wait until their timeout, and the parent would run out of file descriptors. Depends on
 * node:cluster's internal messages, for want of an API; if they change, this has no effect.
 */
function closeWhenLost(worker: Worker): void {
  const inTransit = new Map<number, Connection>();
  const child = worker.process;
  // Missing when the process could not be started.
  if (child.send === undefined) return;
  const send = child.send.bind(child) as unknown as Send;
  const noting: Send = (message, connection, ...rest) => {
    if (connection !== undefined && isHandover(message)) inTransit.set(message.seq, connection);
    return send(message, connection, ...rest);
  };
  child.send = noting as typeof child.send;
  child.on("internalMessage", ({ ack }: { readonly ack?: number }) => {
    // Acknowledged: the worker has it, or node:cluster offers it to another one.
    if (ack !== undefined) inTransit.delete(ack);
  });
  const close = (): void => {
    for (const connection of inTransit.values()) connection.close();
    inTransit.clear();
  };
  worker.once("disconnect", close);
  worker.once("exit", close);
}

function isHandover(message: object): message is Handover {
  const { cmd, act, seq } = message as Partial<Handover>;
  return cmd === "NODE_CLUSTER" && act === "newconn" && typeof seq === "number";
}
