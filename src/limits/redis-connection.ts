import { isIP } from "node:net";
import { createClient } from "@redis/client";
import { type Clock, sleep } from "../core/clock.ts";
import type { TlsMaterial, WatchedTlsFiles } from "../net/tls-files.ts";
import { RateStoreError } from "./rates.ts";
import { type RedisScript, redisScripts } from "./redis-scripts.ts";

/** Step of a wait. */
const STEP_MS = 10;

/**
 * Calls back after this much time of the event loop, unless the returned function is called before. A late step counts as one:
 * while this process is busy it can neither send a command nor read the answer, which does not make the server slow. Between
 * two steps arrived data is read.
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
/** Time limit of commands while the process starts, when it and its neighbours are slow. */
const STARTING_COMMAND_MS = 500;
/** Limit of unanswered commands, including those that timed out. */
const MAX_IN_FLIGHT = 2000;
/** A connection without an answer for this time is closed: its other end may have vanished. */
const SILENT_MS = 1500;
const CONNECT_MS = 1000;
const FIRST_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 1000;

export interface RedisConnectionOptions {
  /** `redis://` or `rediss://`, with its password; never shown. */
  readonly url: string;
  /** For a `rediss:` address: authorities and the own certificate. Default: Node's authorities. */
  readonly tls?: Pick<WatchedTlsFiles, "material" | "onChange"> | undefined;
  readonly clock: Clock;
  /** Time limit of a command in milliseconds, by time of the event loop. Default: 50. */
  readonly commandMs?: number | undefined;
  /** Time from now in which commands may take half a second. Default: 0. */
  readonly startingMs?: number | undefined;
}

/** Errors of cluster nodes. */
const CLUSTER_WORDS: ReadonlySet<string> = new Set(["MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN"]);
export const CLUSTER_REFUSED =
  "redis.url names a node of a Redis Cluster, which is not supported; use one server, or a proxy that hides the cluster";

type Client = ReturnType<typeof createRedisClient>;

/** Reply of a script: numbers, and lists of them. */
export type ScriptReply = unknown;

interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Called with a late reply; rejections are ignored. */
  readonly onLate?: (reply: ScriptReply) => Promise<void>;
}

/** A connection to Redis that reconnects and bounds every wait. */
export class RedisConnection {
  readonly #url: string;
  readonly #tls: RedisConnectionOptions["tls"];
  readonly #clock: Clock;
  readonly #commandMs: number;
  readonly #startedMs: number;
  #client: Client;
  /** Connects with changed files, to take the client's place. */
  #next: Client | undefined;
  /** Why the connection was lost last. */
  #lostBy = "";
  #inFlight = 0;
  /** Time of the last reply, or of the first command without one. */
  #heardAtMs: number;
  /** Connected, without a reply yet: a hanging server accepts connections and sends nothing. */
  #greeting = false;
  #closed = false;

  /** Starts to connect. Throws a RateStoreError for an invalid URL. */
  constructor({ url, tls, clock, commandMs = COMMAND_MS, startingMs = 0 }: RedisConnectionOptions) {
    // Checked here, because the client's error would show the URL.
    if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol))
      throw new RateStoreError("The URL of Redis is not one: it has to look like redis://host:6379.");
    this.#url = url;
    this.#tls = tls;
    tls?.onChange(() => this.#renew());
    this.#clock = clock;
    this.#commandMs = commandMs;
    this.#startedMs = clock.monotonic() + startingMs;
    this.#heardAtMs = clock.monotonic();
    this.#client = this.#open();
  }

  /**
   * Runs a script. Rejects with a RateStoreError when it takes too long; `onLate` then receives its reply, if one arrives.
   */
  async run(script: RedisScript, { keys, args, onLate }: ScriptCall): Promise<ScriptReply> {
    this.#giveUpWhenSilent();
    if (!this.#client.isReady)
      throw new RateStoreError(`Redis is not connected${this.#lostBy}.`, { fault: "disconnected" });
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new RateStoreError("Redis does not keep up.", { fault: "busy" });
    const answer = this.#send(this.#client, script, [String(keys.length), ...keys, ...args]);
    const { promise, resolve, reject } = Promise.withResolvers<ScriptReply>();
    let answered = false;
    const isStarting = this.#clock.monotonic() < this.#startedMs;
    const limitMs = isStarting ? Math.max(STARTING_COMMAND_MS, this.#commandMs) : this.#commandMs;
    const stopTimer = afterLoopTime(this.#clock, limitMs, () => {
      // Arrived data is read first.
      setImmediate(() => {
        if (answered) return;
        reject(new RateStoreError(`Redis did not answer within ${limitMs} ms.`, { fault: "late" }));
        if (onLate !== undefined) answer.then(onLate).catch(() => undefined);
      });
    });
    answer.then(resolve, (reason: unknown) => reject(new RateStoreError(`Redis failed: ${toReason(reason)}.`)));
    return promise.finally(() => {
      answered = true;
      stopTimer();
    });
  }

  /** Resolves when it is connected, or after `waitMs`. */
  async settled(waitMs: number): Promise<void> {
    if (this.#client.isReady) return;
    const ready = new AbortController();
    this.#client.once("ready", () => ready.abort());
    await sleep(this.#clock, waitMs, ready.signal);
  }

  /** Whether the server is a cluster node. False without an answer. */
  async isCluster(): Promise<boolean> {
    if (!this.#client.isReady) return false;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const stopTimer = this.#clock.after(CONNECT_MS, () => resolve(undefined));
    this.#client.sendCommand(["INFO", "server"]).then(resolve, () => resolve(undefined));
    const text = await promise;
    stopTimer();
    return typeof text === "string" && /^redis_mode:cluster/m.test(text);
  }

  /** Closes the connection; unanswered commands are rejected. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#next?.destroy();
    this.#client.destroy();
  }

  async #send(client: Client, script: RedisScript, rest: readonly string[]): Promise<ScriptReply> {
    if (this.#inFlight === 0) this.#heardAtMs = this.#clock.monotonic();
    this.#inFlight += 1;
    try {
      return await client.sendCommand(["EVALSHA", script.sha1, ...rest]).catch((reason: unknown) => {
        if (!(reason instanceof Error) || !reason.message.startsWith("NOSCRIPT")) throw reason;
        return client.sendCommand(["EVAL", script.text, ...rest]);
      });
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
    // Failing commands report it; without a listener it would end the process.
    client.on("error", (reason: unknown) => {
      note(false);
      this.#lostBy = ` (${toReason(reason)})`;
    });
    client.on("connect", () => note(true));
    client.on("ready", () => {
      note(false);
      // Sent before all other commands, which would otherwise be sent twice at first.
      for (const { text } of Object.values(redisScripts)) client.scriptLoad(text).catch(() => undefined);
    });
    client.connect().catch(() => undefined);
    return client;
  }

  /** Connects with changed files; the connection from before is used until the new one is ready. */
  #renew(): void {
    this.#next?.destroy();
    const next = (this.#next = this.#open());
    next.once("ready", () => {
      if (this.#next !== next || this.#closed) return;
      const before = this.#client;
      this.#client = next;
      this.#next = undefined;
      // After the replies to its commands.
      if (before.isReady) before.close().catch(() => undefined);
      else before.destroy();
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
    // All Redis-compatible servers have the older protocol, and scripts reply with numbers in both.
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

/** Code of the server, such as `LOADING` or `WRONGPASS`, or of the system: without address and secrets. */
function toReason(reason: unknown): string {
  if (!(reason instanceof Error)) return "unknown";
  if ("code" in reason && typeof reason.code === "string") return reason.code;
  const word = /^[A-Z]{3,20}\b/.exec(reason.message)?.[0] ?? reason.constructor.name;
  return CLUSTER_WORDS.has(word) ? `${word}, ${CLUSTER_REFUSED}` : word;
}
