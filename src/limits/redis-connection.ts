import { createClient } from "@redis/client";
import { type Clock, sleep } from "../core/clock.ts";
import { RateStoreError } from "./rates.ts";
import { type RedisScript, redisScripts } from "./redis-scripts.ts";

/** How much of a wait one step is. */
const STEP_MS = 10;

/**
 * Calls back when the event loop has had this much time, unless the returned function is called before. However late a
 * step comes, it counts as one: while this process is busy it can neither send a command nor read the answer, and that is
 * no sign that the other side is slow. Between two steps, everything that has arrived is read.
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
/** How long one may take while the process starts: its own code is slow then, and its neighbours may be starting too. */
const STARTING_COMMAND_MS = 500;
/** Commands without an answer, those no longer waited for included. */
const MAX_IN_FLIGHT = 2000;
/** A connection that has not answered for so long is given up: its other end may be gone without a word. */
const SILENT_MS = 1500;
const CONNECT_MS = 1000;
const FIRST_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 1000;

export interface RedisConnectionOptions {
  /** `redis://` or `rediss://`, with a password if there is one; never shown. */
  readonly url: string;
  readonly clock: Clock;
  /** How long a command may take, in time of this process's event loop. Default: 50. */
  readonly commandMs?: number | undefined;
  /** For how long from now on a command may take half a second. Default: 0. */
  readonly startingMs?: number | undefined;
}

/** What nodes of a cluster refuse commands with. */
const CLUSTER_WORDS: ReadonlySet<string> = new Set(["MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN"]);
export const CLUSTER_REFUSED =
  "redis.url names a node of a Redis Cluster, which is not supported; use one server, or a proxy that hides the cluster";

type Client = ReturnType<typeof createRedisClient>;

/** What a script answers: numbers, and lists of them. */
export type ScriptReply = unknown;

interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Called with an answer that came when nobody waited for it any more; rejections are ignored. */
  readonly onLate?: (reply: ScriptReply) => Promise<void>;
}

/** One connection to Redis that keeps itself up, and on which every wait is short. */
export class RedisConnection {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #commandMs: number;
  readonly #startedMs: number;
  #client: Client;
  #inFlight = 0;
  /** When the connection last gave a sign of life, or was first asked for one. */
  #heardAtMs: number;
  /** It is connected, and waits for the first words: a server that hangs accepts connections and then says nothing. */
  #greeting = false;
  #closed = false;

  /** Begins to connect. Throws a RateStoreError when the URL is none. */
  constructor({ url, clock, commandMs = COMMAND_MS, startingMs = 0 }: RedisConnectionOptions) {
    // Not left to the client: its error would show the URL.
    if (!URL.canParse(url) || !/^rediss?:$/.test(new URL(url).protocol))
      throw new RateStoreError("The URL of Redis is not one: it has to look like redis://host:6379.");
    this.#url = url;
    this.#clock = clock;
    this.#commandMs = commandMs;
    this.#startedMs = clock.monotonic() + startingMs;
    this.#heardAtMs = clock.monotonic();
    this.#client = this.#open();
  }

  /**
   * Runs a script. Rejects with a RateStoreError when it takes too long; what it did all the same is told to `onLate`,
   * if the answer comes at all.
   */
  async run(script: RedisScript, { keys, args, onLate }: ScriptCall): Promise<ScriptReply> {
    this.#giveUpWhenSilent();
    if (!this.#client.isReady) throw new RateStoreError("Redis is not connected.");
    if (this.#inFlight >= MAX_IN_FLIGHT) throw new RateStoreError("Redis does not keep up.");
    const answer = this.#send(this.#client, script, [String(keys.length), ...keys, ...args]);
    const { promise, resolve, reject } = Promise.withResolvers<ScriptReply>();
    let answered = false;
    const isStarting = this.#clock.monotonic() < this.#startedMs;
    const limitMs = isStarting ? Math.max(STARTING_COMMAND_MS, this.#commandMs) : this.#commandMs;
    const stopTimer = afterLoopTime(this.#clock, limitMs, () => {
      // What has arrived is read first.
      setImmediate(() => {
        if (answered) return;
        reject(new RateStoreError(`Redis did not answer within ${limitMs} ms.`));
        if (onLate !== undefined) answer.then(onLate).catch(() => undefined);
      });
    });
    answer.then(resolve, (reason: unknown) => reject(new RateStoreError(`Redis failed: ${toReason(reason)}.`)));
    return promise.finally(() => {
      answered = true;
      stopTimer();
    });
  }

  /** Resolves when it is connected, or after `waitMs` when it is not. */
  async settled(waitMs: number): Promise<void> {
    if (this.#client.isReady) return;
    const ready = new AbortController();
    this.#client.once("ready", () => ready.abort());
    await sleep(this.#clock, waitMs, ready.signal);
  }

  /** Whether it is connected to a node of a cluster. False when the server does not tell, or does not answer. */
  async isCluster(): Promise<boolean> {
    if (!this.#client.isReady) return false;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const stopTimer = this.#clock.after(CONNECT_MS, () => resolve(undefined));
    this.#client.sendCommand(["INFO", "server"]).then(resolve, () => resolve(undefined));
    const text = await promise;
    stopTimer();
    return typeof text === "string" && /^redis_mode:cluster/m.test(text);
  }

  /** Ends the connection; commands without an answer are rejected. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
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
      // A refusal is a sign of life too.
      this.#heardAtMs = this.#clock.monotonic();
      this.#inFlight -= 1;
    }
  }

  #open(): Client {
    const client = createRedisClient(this.#url);
    const note = (greeting: boolean): void => {
      if (client !== this.#client) return;
      this.#greeting = greeting;
      this.#heardAtMs = this.#clock.monotonic();
    };
    // Told by the commands that fail; without a listener it would end the process.
    client.on("error", () => note(false));
    client.on("connect", () => note(true));
    client.on("ready", () => {
      note(false);
      // Goes ahead of every other command. Without it each would be sent twice at first.
      for (const { text } of Object.values(redisScripts)) client.scriptLoad(text).catch(() => undefined);
    });
    client.connect().catch(() => undefined);
    return client;
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

function createRedisClient(url: string) {
  return createClient({
    url,
    // The older protocol is spoken by everything that calls itself Redis, and scripts answer with numbers anyway.
    RESP: 2,
    disableOfflineQueue: true,
    disableClientInfo: true,
    socket: { connectTimeout: CONNECT_MS, reconnectStrategy: toReconnectMs },
  });
}

/** From 50 ms to a second, with jitter, so that many replicas do not come back at the same moment. */
function toReconnectMs(retries: number): number {
  return Math.min(FIRST_RECONNECT_MS * 2 ** Math.min(retries, 10), MAX_RECONNECT_MS) * (0.5 + Math.random() / 2);
}

/** The server's own word, such as `LOADING` or `WRONGPASS`, or the system's: neither holds an address or a secret. */
function toReason(reason: unknown): string {
  if (!(reason instanceof Error)) return "unknown";
  if ("code" in reason && typeof reason.code === "string") return reason.code;
  const word = /^[A-Z]{3,20}\b/.exec(reason.message)?.[0] ?? reason.constructor.name;
  return CLUSTER_WORDS.has(word) ? `${word}, ${CLUSTER_REFUSED}` : word;
}
