import { isIP } from "node:net";
import { createClient } from "@redis/client";
import { type Clock, sleep } from "../core/clock.ts";
import type { TlsMaterial, WatchedTlsFiles } from "../net/tls-files.ts";
import { RateStoreError } from "./rates.ts";
import type { RedisScript } from "./redis-scripts.ts";

/** Step of a wait. */
const STEP_MS = 10;

/**
 * Calls back after `delayMs` of event loop time, unless the returned function is called before. A late step counts as one step: a
 * busy process can neither send a command nor read the answer, and that does not make the server slow. Arrived data is read between
 * two steps.
 */
function afterLoopTime(clock: Clock, delayMs: number, callback: () => void): () => void {
  let left = Math.ceil(delayMs / STEP_MS);
  const step = (): void => {
    left -= 1;
    if (left > 0) cancel = clock.after(STEP_MS, step);
    else callback();
  };
  let cancel = clock.after(Math.min(STEP_MS, delayMs), step);
  return () => cancel();
}

const COMMAND_MS = 50;
/** Time limit of commands while the process starts, when it and other starting processes are slow. */
const STARTING_COMMAND_MS = 500;
/** Limit of unanswered commands, including those that timed out. */
const MAX_IN_FLIGHT = 2000;
/** A connection with commands and no answer for this time is closed, because the server may be gone. */
const SILENT_MS = 1500;
const CONNECT_MS = 1000;
const FIRST_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 1000;

export interface RedisConnectionOptions {
  /** A valid `redis://` or `rediss://` address of one host, with its password; never logged. */
  readonly url: string;
  /** For a `rediss:` address: authorities and the own certificate. Default: Node's authorities. */
  readonly tls?: Pick<WatchedTlsFiles, "material" | "onChange"> | undefined;
  readonly clock: Clock;
  /** Time limit of a command in milliseconds, by time of the event loop. Default: 50. */
  readonly commandMs?: number | undefined;
  /** Time from now in which commands may take STARTING_COMMAND_MS. Default: 0. */
  readonly startingMs?: number | undefined;
  /** Scripts that are loaded with each connection. Default: none. */
  readonly scripts?: readonly RedisScript[];
}

type Client = ReturnType<typeof createRedisClient>;

/** Reply of a script: numbers, and lists of them. */
export type ScriptReply = unknown;

export interface ScriptCall {
  /** All in one slot of a cluster. */
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Called with a late reply; rejections are ignored. */
  readonly onLate?: ((reply: ScriptReply) => Promise<void>) | undefined;
}

/** Runs scripts: at one server, at the master that Sentinels name, or at the masters of a cluster. */
export interface ScriptRunner {
  /** Rejects with a RateStoreError when it takes too long; `onLate` then receives its reply, if one arrives. */
  run(script: RedisScript, call: ScriptCall): Promise<ScriptReply>;
  /** Resolves when it is connected, or after `waitMs`. */
  settled(waitMs: number): Promise<void>;
  /** Closes all connections; unanswered commands are rejected. */
  close(): void;
}

/** The mode that a server reports in INFO. */
export type RedisServerKind = "standalone" | "cluster" | "sentinel";

/** The error of a cluster node that did not run a command, because it does not own the slot of the keys. */
export class RedisRedirection extends RateStoreError {
  readonly kind: "MOVED" | "ASK" | "TRYAGAIN";
  /** `host:port` of the node that owns the slot; an empty host means that of the asked node. Undefined with TRYAGAIN. */
  readonly address: string | undefined;

  constructor(kind: RedisRedirection["kind"], address: string | undefined) {
    super(`Redis failed: ${kind}.`);
    this.kind = kind;
    this.address = address;
  }
}

/** A connection to Redis that reconnects and bounds every wait. */
export class RedisConnection implements ScriptRunner {
  readonly #url: string;
  readonly #tls: RedisConnectionOptions["tls"];
  readonly #clock: Clock;
  readonly #commandMs: number;
  readonly #startedMs: number;
  readonly #scripts: readonly RedisScript[];
  readonly #stopListening: (() => void) | undefined;
  #client: Client;
  /** Client that connects with changed TLS files, and then replaces `#client`. */
  #next: Client | undefined;
  /** Why the connection was lost last. */
  #lostBy = "";
  #inFlight = 0;
  /** Time of the last reply, or of the first command without one. */
  #heardAtMs: number;
  /** Whether it is connected without a reply yet: a hanging server accepts connections and sends nothing. */
  #greeting = false;
  #closed = false;

  /** Starts to connect. */
  constructor({ url, tls, clock, commandMs = COMMAND_MS, startingMs = 0, scripts = [] }: RedisConnectionOptions) {
    this.#url = url;
    this.#tls = tls;
    this.#stopListening = tls?.onChange(() => this.#renew());
    this.#scripts = scripts;
    this.#clock = clock;
    this.#commandMs = commandMs;
    this.#startedMs = clock.monotonic() + startingMs;
    this.#heardAtMs = clock.monotonic();
    this.#client = this.#open();
  }

  /** Whether it is connected. */
  get isReady(): boolean {
    return this.#client.isReady;
  }

  /** Runs a script. `asking`: at a node that receives the slot, by an ASK redirection. */
  run(script: RedisScript, { keys, args, onLate }: ScriptCall, mode?: "asking"): Promise<ScriptReply> {
    const rest = [String(keys.length), ...keys, ...args];
    const send = async (client: Client): Promise<ScriptReply> => {
      if (mode === "asking") {
        // ASKING applies only to the next command.
        const asked = client.sendCommand(["ASKING"]);
        const [reply] = await Promise.all([client.sendCommand(["EVAL", script.text, ...rest]), asked]);
        return reply;
      }
      return client.sendCommand(["EVALSHA", script.sha1, ...rest]).catch((reason: unknown) => {
        if (!(reason instanceof Error) || !reason.message.startsWith("NOSCRIPT")) throw reason;
        return client.sendCommand(["EVAL", script.text, ...rest]);
      });
    };
    return this.#request(send, onLate);
  }

  /** Sends another command. Rejects with a RateStoreError when it takes too long. */
  command(words: readonly string[]): Promise<unknown> {
    return this.#request((client) => client.sendCommand([...words]));
  }

  async #request(
    send: (client: Client) => Promise<ScriptReply>,
    onLate?: (reply: ScriptReply) => Promise<void>,
  ): Promise<ScriptReply> {
    this.#giveUpWhenSilent();
    if (!this.#client.isReady)
      throw new RateStoreError(`Redis is not connected${this.#lostBy}.`, { fault: "disconnected" });
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new RateStoreError("Redis does not keep up.", { fault: "busy" });
    const answer = this.#count(send(this.#client));
    const { promise, resolve, reject } = Promise.withResolvers<ScriptReply>();
    let answered = false;
    const isStarting = this.#clock.monotonic() < this.#startedMs;
    const limitMs = isStarting ? Math.max(STARTING_COMMAND_MS, this.#commandMs) : this.#commandMs;
    const stopTimer = afterLoopTime(this.#clock, limitMs, () => {
      // A reply may have arrived, so the event loop reads first.
      setImmediate(() => {
        if (answered) return;
        reject(new RateStoreError(`Redis did not answer within ${limitMs} ms.`, { fault: "late" }));
        if (onLate !== undefined) answer.then(onLate).catch(() => undefined);
      });
    });
    answer.then(resolve, (reason: unknown) => reject(toError(reason)));
    return promise.finally(() => {
      answered = true;
      stopTimer();
    });
  }

  /** Resolves when it is connected, or after `waitMs`. */
  async settled(waitMs: number): Promise<void> {
    const client = this.#client;
    if (client.isReady) return;
    const ready = new AbortController();
    const onReady = (): void => ready.abort();
    client.once("ready", onReady);
    await sleep(this.#clock, waitMs, ready.signal);
    client.off("ready", onReady);
  }

  /** The mode that the server reports; undefined without an answer. */
  async serverKind(): Promise<RedisServerKind | undefined> {
    if (!this.#client.isReady) return undefined;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const stopTimer = this.#clock.after(CONNECT_MS, () => resolve(undefined));
    this.#client.sendCommand(["INFO", "server"]).then(resolve, () => resolve(undefined));
    const text = await promise;
    stopTimer();
    // Valkey names the field `server_mode`.
    const kind = /^(?:redis|server)_mode:(standalone|cluster|sentinel)\s*$/m.exec(
      typeof text === "string" ? text : "",
    )?.[1];
    return kind as RedisServerKind | undefined;
  }

  /** Closes the connection; unanswered commands are rejected. */
  close(): void {
    this.#end()?.destroy();
  }

  /** Closes the connection after the replies to its commands. */
  retire(): void {
    const client = this.#end();
    if (client !== undefined) retire(client);
  }

  #end(): Client | undefined {
    if (this.#closed) return undefined;
    this.#closed = true;
    this.#stopListening?.();
    this.#next?.destroy();
    return this.#client;
  }

  async #count(answer: Promise<ScriptReply>): Promise<ScriptReply> {
    if (this.#inFlight === 0) this.#heardAtMs = this.#clock.monotonic();
    this.#inFlight += 1;
    try {
      return await answer;
    } finally {
      // An error is a reply too.
      this.#heardAtMs = this.#clock.monotonic();
      this.#inFlight -= 1;
    }
  }

  #open(): Client {
    const client = createRedisClient(this.#url, this.#tls?.material);
    const note = (greeting: boolean): void => {
      if (client !== this.#client) return;
      this.#greeting = greeting;
      this.#heardAtMs = this.#clock.monotonic();
    };
    // Failing commands report the error. Without a listener the event would end the process.
    client.on("error", (reason: unknown) => {
      note(false);
      this.#lostBy = ` (${toReason(reason)})`;
    });
    client.on("connect", () => note(true));
    client.on("ready", () => {
      note(false);
      // Sent before all other commands, which would otherwise be sent twice at first.
      for (const { text } of this.#scripts) client.scriptLoad(text).catch(() => undefined);
    });
    client.connect().catch(() => undefined);
    return client;
  }

  /** Connects with changed TLS files. The current connection is used until the new one is ready. */
  #renew(): void {
    this.#next?.destroy();
    const next = (this.#next = this.#open());
    next.once("ready", () => {
      if (this.#next !== next || this.#closed) return;
      const before = this.#client;
      this.#client = next;
      this.#next = undefined;
      retire(before);
    });
  }

  #giveUpWhenSilent(): void {
    const waits = this.#inFlight > 0 || this.#greeting;
    if (!waits || this.#closed || this.#clock.monotonic() - this.#heardAtMs < SILENT_MS) return;
    this.#client.destroy();
    this.#greeting = false;
    this.#heardAtMs = this.#clock.monotonic();
    this.#client = this.#open();
  }
}

function createRedisClient(url: string, tls: TlsMaterial | undefined) {
  const { protocol, hostname } = new URL(url);
  const connect = { connectTimeout: CONNECT_MS, reconnectStrategy: toReconnectMs };
  const isName = isIP(hostname.replace(/^\[|\]$/g, "")) === 0;
  return createClient({
    url,
    // All Redis-compatible servers support RESP 2, and scripts reply with numbers in both versions.
    RESP: 2,
    disableOfflineQueue: true,
    disableClientInfo: true,
    socket:
      protocol === "rediss:"
        ? { ...connect, ...tls, tls: true, minVersion: "TLSv1.2", ...(isName && { servername: hostname }) }
        : connect,
  });
}

/** 50 ms to 1 s with jitter, so that replicas do not reconnect at the same time. */
function toReconnectMs(retries: number): number {
  return Math.min(FIRST_RECONNECT_MS * 2 ** Math.min(retries, 10), MAX_RECONNECT_MS) * (0.5 + Math.random() / 2);
}

/** Closes the client after the replies to its commands. */
function retire(client: Client): void {
  if (client.isReady) client.close().catch(() => undefined);
  else client.destroy();
}

const REDIRECTION = /^(?:(MOVED|ASK) \d+ (\S*:\d+)|TRYAGAIN\b)/;

function toError(reason: unknown): RateStoreError {
  const [redirection, kind = "TRYAGAIN", address] =
    REDIRECTION.exec(reason instanceof Error ? reason.message : "") ?? [];
  if (redirection !== undefined) return new RedisRedirection(kind as RedisRedirection["kind"], address);
  return new RateStoreError(`Redis failed: ${toReason(reason)}.`);
}

/** Code of the server, such as `LOADING` or `WRONGPASS`, or of the system: without address and secrets. */
function toReason(reason: unknown): string {
  if (!(reason instanceof Error)) return "unknown";
  if ("code" in reason && typeof reason.code === "string") return reason.code;
  return /^[A-Z]{3,20}\b/.exec(reason.message)?.[0] ?? reason.constructor.name;
}
