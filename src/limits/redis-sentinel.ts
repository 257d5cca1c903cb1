import { type Clock, sleep } from "../core/clock.ts";
import { RateStoreError } from "./rates.ts";
import {
  RedisConnection,
  type RedisConnectionOptions,
  type ScriptCall,
  type ScriptReply,
  type ScriptRunner,
} from "./redis-connection.ts";
import type { RedisScript } from "./redis-scripts.ts";

export interface RedisSentinelOptions extends Omit<RedisConnectionOptions, "url"> {
  /** Addresses of the Sentinels, with user, password and database of the servers. */
  readonly urls: readonly URL[];
  /** Name of the master in the configuration of the Sentinels. */
  readonly master: string;
  /** Credentials of the Sentinels themselves. Default: none. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Called with the address of a master when the connection begins to use it. */
  readonly onMaster?: ((address: string) => void) | undefined;
}

/** Interval of questions to the Sentinels: usually, and while there is no connection to a master. */
const ASK_MS = 1000;
const ASK_AGAIN_MS = 200;
const ANSWER_MS = 500;
const CONNECT_MS = 1000;
/** Step of waits for the first master. */
const STEP_MS = 20;

interface Master {
  /** `host:port`. */
  readonly address: string;
  readonly connection: RedisConnection;
}

/**
 * A connection to the master that Sentinels name. All Sentinels are asked every second, and the answer with the latest failover
 * number counts, so that a Sentinel that was cut off does not decide. A new master is used once it reports itself as a master.
 */
export class RedisSentinel implements ScriptRunner {
  readonly #options: RedisSentinelOptions;
  readonly #clock: Clock;
  readonly #sentinels: readonly RedisConnection[];
  readonly #startedMs: number;
  #current: Master | undefined;
  #problem = "no Sentinel has answered yet";
  #stopTimer: (() => void) | undefined;
  #closed = false;

  constructor({ startingMs = 0, ...options }: RedisSentinelOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#startedMs = this.#clock.monotonic() + startingMs;
    const { urls, username, password, tls, clock } = options;
    this.#sentinels = urls.map((url) => {
      const own = new URL(url);
      own.username = username ?? "";
      own.password = password ?? "";
      own.pathname = "";
      return new RedisConnection({ url: own.href, tls, clock, commandMs: ANSWER_MS });
    });
    void this.#keepLooking();
  }

  async run(script: RedisScript, call: ScriptCall): Promise<ScriptReply> {
    if (this.#current === undefined)
      throw new RateStoreError(`There is no master of Redis: ${this.#problem}.`, { fault: "disconnected" });
    return this.#current.connection.run(script, call);
  }

  async settled(waitMs: number): Promise<void> {
    const untilMs = this.#clock.monotonic() + waitMs;
    while (this.#current?.connection.isReady !== true && this.#clock.monotonic() < untilMs)
      await sleep(this.#clock, STEP_MS);
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
    for (const sentinel of this.#sentinels) sentinel.close();
    this.#current?.connection.close();
  }

  async #keepLooking(): Promise<void> {
    await Promise.all(this.#sentinels.map((sentinel) => sentinel.settled(ASK_AGAIN_MS)));
    await this.#look();
    if (this.#closed) return;
    const delayMs = this.#current?.connection.isReady === true ? ASK_MS : ASK_AGAIN_MS;
    this.#stopTimer = this.#clock.after(delayMs, () => void this.#keepLooking());
  }

  async #look(): Promise<void> {
    const named = await Promise.all(this.#sentinels.map((sentinel) => this.#ask(sentinel)));
    const newest = named.reduce((best, one) => ((one?.epoch ?? -1) > (best?.epoch ?? -1) ? one : best), undefined);
    if (newest !== undefined && newest.address !== this.#current?.address) await this.#use(newest.address);
  }

  /** The master that a Sentinel names, and the number of the failover that made it one. */
  async #ask(sentinel: RedisConnection): Promise<{ readonly address: string; readonly epoch: number } | undefined> {
    const { master } = this.#options;
    try {
      // GET-MASTER-ADDR-BY-NAME gives the new master before the failover is complete; SENTINEL MASTER gives the failover's number.
      const address = await sentinel.command(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]);
      const [host, port] = Array.isArray(address) ? (address as unknown[]) : [];
      if (typeof host === "string" && typeof port === "string") {
        const facts = await sentinel.command(["SENTINEL", "MASTER", master]);
        const epoch = Array.isArray(facts) ? Number(facts[facts.indexOf("config-epoch") + 1]) : 0;
        return { address: `${host.includes(":") ? `[${host}]` : host}:${port}`, epoch };
      }
      this.#problem = `the Sentinels know none with the name ${JSON.stringify(master)} (redis.sentinel.master)`;
    } catch (reason) {
      this.#problem = `a Sentinel did not name one: ${toText(reason)}`;
    }
    return undefined;
  }

  /** Connects to this server, and uses it in place of the current one if it is a master. */
  async #use(address: string): Promise<void> {
    const { urls, onMaster } = this.#options;
    const url = new URL(urls[0]!);
    url.host = address;
    const startingMs = this.#startedMs - this.#clock.monotonic();
    const connection = new RedisConnection({ ...this.#options, url: url.href, startingMs });
    await connection.settled(CONNECT_MS);
    const role = await connection.command(["ROLE"]).catch((reason: unknown) => reason);
    const isReplica = Array.isArray(role) && role[0] !== "master";
    if (this.#closed || !connection.isReady || isReplica) {
      const text = isReplica ? "it is a replica" : toText(role);
      this.#problem = `${address}, which the Sentinels name, cannot be used: ${text}`;
      connection.close();
      return;
    }
    // Otherwise reservations in late replies of the former master would be released at the new one.
    this.#current?.connection.close();
    this.#current = { address, connection };
    onMaster?.(address);
  }
}

function toText(reason: unknown): string {
  return reason instanceof Error ? reason.message.replace(/\.$/, "") : "unknown";
}
