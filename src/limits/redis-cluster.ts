import { type Clock, sleep } from "../core/clock.ts";
import { RateStoreError } from "./rates.ts";
import {
  RedisConnection,
  type RedisConnectionOptions,
  RedisRedirection,
  type ScriptCall,
  type ScriptReply,
  type ScriptRunner,
} from "./redis-connection.ts";
import type { RedisScript } from "./redis-scripts.ts";
import { readSlots, type SlotRange, SLOTS, slotOf, toAddress } from "./redis-slots.ts";
import { StoreBreaker } from "./store-breaker.ts";

export interface RedisClusterOptions extends Omit<RedisConnectionOptions, "url"> {
  /** Addresses of some nodes, with user and password of all. */
  readonly urls: readonly URL[];
  /** Called when a master becomes unavailable, and when it is back or replaced. */
  readonly onNode?: ((address: string, state: "away" | "back") => void) | undefined;
}

/** Interval of checks of the nodes, and of CLUSTER SLOTS while no owner is known to have changed. */
const LOOK_MS = 1000;
const ASK_MS = 10_000;
/** Shortest pause between two CLUSTER SLOTS, such as after redirections. */
const ASK_AGAIN_MS = 100;
/** Limit of redirections of one command, and the wait after TRYAGAIN, when the keys of a moving slot are at two nodes. */
const MAX_REDIRECTIONS = 5;
const TRY_AGAIN_MS = 10;
/** Time in which a redirected command may be sent again, and in which a new node may connect. */
const REDIRECTED_MS = 50;
/** Time for which nodes without slots are kept, because a node that is about to receive its first slot has none yet. */
const UNUSED_MS = 60_000;
/** Step of waits for the first connections. */
const STEP_MS = 20;

interface ClusterNode {
  readonly connection: RedisConnection;
  /** Opens when it does not answer in time, so that requests of its accounts are not delayed. */
  readonly breaker: StoreBreaker;
  usedAtMs: number;
  isAway: boolean;
}

/**
 * Connections to the masters of a Redis Cluster. Follows moved slots and promoted replicas, and bounds every wait. Errors of one
 * node, while others answer, have the scope `node`.
 */
export class RedisCluster implements ScriptRunner {
  readonly #options: RedisClusterOptions;
  readonly #clock: Clock;
  readonly #seeds: readonly string[];
  readonly #startedMs: number;
  readonly #nodes = new Map<string, ClusterNode>();
  /** Address of the master of each slot. */
  #owners = noOwners();
  #masters: ReadonlySet<string> = new Set();
  #askedAtMs = -Infinity;
  /** Whether the owners may have changed. */
  #isStale = true;
  #asking = false;
  #turn = 0;
  #stopTimer: (() => void) | undefined;
  #closed = false;

  constructor({ startingMs = 0, ...options }: RedisClusterOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#startedMs = this.#clock.monotonic() + startingMs;
    this.#seeds = options.urls.map(({ hostname, port }) => `${hostname}:${port === "" ? "6379" : port}`);
    for (const address of this.#seeds) this.#node(address);
    this.#lookLater();
  }

  async run(script: RedisScript, call: ScriptCall): Promise<ScriptReply> {
    const slot = slotOf(call.keys[0]!);
    const untilMs = this.#clock.monotonic() + REDIRECTED_MS;
    let address = this.#owners[slot];
    let mode: "asking" | undefined;
    for (let redirections = 0; ; redirections += 1) {
      try {
        return await this.#runAt(address, { script, call, mode, isRedirected: redirections > 0 });
      } catch (reason) {
        const isLast = redirections === MAX_REDIRECTIONS || this.#clock.monotonic() > untilMs;
        if (!(reason instanceof RedisRedirection) || isLast) throw this.#toScoped(reason);
        if (reason.kind === "TRYAGAIN") await sleep(this.#clock, TRY_AGAIN_MS);
        if (reason.kind === "MOVED") {
          this.#owners[slot] = toAddress(reason.address!, address!);
          this.#isStale = true;
          void this.#askOwners();
        }
        mode = reason.kind === "ASK" ? "asking" : undefined;
        address = mode === "asking" ? toAddress(reason.address!, address!) : this.#owners[slot];
      }
    }
  }

  async settled(waitMs: number): Promise<void> {
    const untilMs = this.#clock.monotonic() + waitMs;
    while (this.#clock.monotonic() < untilMs) {
      if (this.#masters.size > 0 && this.#masters.values().every((address) => this.#isUsable(address))) return;
      await this.#askOwners();
      await sleep(this.#clock, STEP_MS);
    }
  }

  /** Kind of server, as the first connected node reports it; undefined without an answer. */
  async serverKind(): ReturnType<RedisConnection["serverKind"]> {
    const first = this.#nodes.values().find(({ connection }) => connection.isReady);
    return first?.connection.serverKind();
  }

  close(): void {
    this.#closed = true;
    this.#stopTimer?.();
    for (const address of this.#nodes.keys()) this.#drop(address, "close");
  }

  async #runAt(
    address: string | undefined,
    {
      script,
      call,
      mode,
      isRedirected,
    }: { readonly script: RedisScript; readonly call: ScriptCall } & {
      readonly mode: "asking" | undefined;
      readonly isRedirected: boolean;
    },
  ): Promise<ScriptReply> {
    if (this.#closed) throw unavailable("the connections are closed");
    const node = address === undefined ? undefined : this.#node(address);
    if (node === undefined) throw unavailable("no node is known for the slot");
    if (node.breaker.open) throw unavailable("the node does not answer");
    if (isRedirected) await node.connection.settled(REDIRECTED_MS);
    node.usedAtMs = this.#clock.monotonic();
    try {
      const reply = await node.connection.run(script, call, mode);
      node.breaker.succeeded();
      return reply;
    } catch (reason) {
      if (reason instanceof RateStoreError && (reason.fault === "late" || reason.fault === "busy"))
        node.breaker.failed();
      else node.breaker.succeeded();
      throw reason;
    }
  }

  /** Gives an error the scope `node` while another master can be used. CLUSTERDOWN concerns the whole store. */
  #toScoped(reason: unknown): unknown {
    if (!(reason instanceof RateStoreError)) return reason;
    const isWhole = /\bCLUSTERDOWN\b/.test(reason.message) || !this.#masters.values().some((at) => this.#isUsable(at));
    return isWhole ? reason : new RateStoreError(reason.message, { fault: reason.fault, scope: "node" });
  }

  #isUsable(address: string): boolean {
    const node = this.#nodes.get(address);
    return node !== undefined && node.connection.isReady && !node.breaker.open;
  }

  /** The node of this address; connects to it when it is new. */
  #node(address: string): ClusterNode {
    const known = this.#nodes.get(address);
    if (known !== undefined) return known;
    const url = new URL(this.#options.urls[0]!);
    url.host = address;
    const startingMs = this.#startedMs - this.#clock.monotonic();
    const connection = new RedisConnection({ ...this.#options, url: url.href, startingMs });
    const breaker = new StoreBreaker({
      clock: this.#clock,
      probe: () => connection.command(["PING"]),
      onChange: () => undefined,
    });
    const node = { connection, breaker, usedAtMs: this.#clock.monotonic(), isAway: false };
    this.#nodes.set(address, node);
    return node;
  }

  #drop(address: string, how: "close" | "retire"): void {
    const node = this.#nodes.get(address);
    this.#nodes.delete(address);
    node?.breaker.close();
    node?.connection[how]();
  }

  #lookLater(): void {
    if (!this.#closed) this.#stopTimer = this.#clock.after(LOOK_MS, () => void this.#look());
  }

  async #look(): Promise<void> {
    this.#noteStates();
    const isDue = this.#clock.monotonic() - this.#askedAtMs >= ASK_MS;
    const isWhole = this.#masters.size > 0 && this.#masters.values().every((address) => this.#isUsable(address));
    if (this.#isStale || isDue || !isWhole) await this.#askOwners();
    this.#lookLater();
  }

  /** Reports masters that have become unavailable for a second, or are back. */
  #noteStates(): void {
    for (const [address, node] of this.#nodes) {
      const isAway = this.#masters.has(address) && !this.#isUsable(address);
      if (isAway === node.isAway) continue;
      node.isAway = isAway;
      this.#options.onNode?.(address, isAway ? "away" : "back");
    }
  }

  /** Asks a node for the owners of all slots: a different node each time, masters first. */
  async #askOwners(): Promise<void> {
    if (this.#asking || this.#closed || this.#clock.monotonic() - this.#askedAtMs < ASK_AGAIN_MS) return;
    this.#asking = true;
    this.#askedAtMs = this.#clock.monotonic();
    const others = this.#seeds.filter((address) => !this.#masters.has(address));
    const masters = [...this.#masters];
    const first = this.#turn++ % Math.max(masters.length, 1);
    const candidates = [...masters.slice(first), ...masters.slice(0, first), ...others];
    try {
      for (const address of candidates) {
        if (this.#closed) return;
        const { connection, breaker } = this.#node(address);
        if (!connection.isReady || breaker.open) continue;
        const reply = await connection.command(["CLUSTER", "SLOTS"]).catch(() => undefined);
        const ranges = readSlots(reply, address);
        if (ranges.length === 0) continue;
        this.#apply(ranges);
        break;
      }
    } finally {
      this.#asking = false;
    }
  }

  #apply(ranges: readonly SlotRange[]): void {
    if (this.#closed) return;
    const owners = noOwners();
    for (const { from, to, owner } of ranges) owners.fill(owner, from, to + 1);
    this.#owners = owners;
    this.#masters = new Set(ranges.map(({ owner }) => owner));
    this.#isStale = owners.includes(undefined);
    for (const address of this.#masters) this.#node(address);
    const oldMs = this.#clock.monotonic() - UNUSED_MS;
    for (const [address, { usedAtMs }] of this.#nodes)
      if (!this.#masters.has(address) && usedAtMs < oldMs) this.#drop(address, "retire");
  }
}

function noOwners(): (string | undefined)[] {
  return Array.from({ length: SLOTS }, () => undefined);
}

function unavailable(why: string): RateStoreError {
  return new RateStoreError(`A part of the Redis Cluster is unavailable: ${why}.`, { fault: "disconnected" });
}
