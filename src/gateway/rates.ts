import type { Config } from "../config/config.ts";
import type { HealthNotes } from "../core/health-notes.ts";
import { createMemoryRates } from "../limits/memory.ts";
import type { RateStore } from "../limits/rates.ts";
import type { RedisEvent, RedisRates } from "../limits/redis.ts";
import { createSharedRates } from "../limits/shared-rates.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { RATE_OPERATIONS, type StoreTimes, timed } from "./timed.ts";
import { openTlsFiles } from "./tls.ts";

/** Where rates are counted: in this process, or with other replicas through Redis or PostgreSQL. */
type RatesPlace = "memory" | "redis" | "postgres";

/** The rates of one process. */
export interface Rates {
  readonly store: RateStore;
  readonly place: RatesPlace;
  /** Whether the shared store is unavailable, so that this process enforces its share by itself. */
  isAlone(): boolean;
  /** Number of requests decided on by this process alone so far. */
  decidedAlone(): number;
  /** Failed commands of the shared store so far, by their fault. */
  faults(): ReadonlyMap<string, number>;
  /** Number of replicas that share the rates, as last seen. */
  replicas(): number;
  /** Notes about upstream models, shared with other processes; undefined for a process that is alone. */
  readonly notes: HealthNotes | undefined;
  /** Passes on changed keys; undefined without Redis. */
  readonly exchangeChanges: RedisRates["exchangeChanges"] | undefined;
}

/** Limit for joining the shared store at the start. */
const JOIN_MS = 5_000;
/** Time after that in which Redis or PostgreSQL may be slow: replicas that start together delay each other. */
const STARTING_MS = 15_000;

interface RatesPorts extends StoreTimes {
  readonly database: Store;
  readonly log: Logger;
  /** ID of this process among the replicas. */
  readonly replica: string;
  /** Used in place of this process's memory. */
  readonly shared?: { readonly rates: RateStore; readonly notes: HealthNotes } | undefined;
  /** Number of replicas as an earlier process has last seen it. Default: 1. */
  readonly replicasBefore?: number | undefined;
}

/** Opens the rates in Redis if it is configured, else in PostgreSQL if that is the database, else in memory. */
export async function openRates(config: Config, ports: RatesPorts): Promise<Rates> {
  const { database, clock, log, replica, shared, replicasBefore } = ports;
  const { burstMs } = config;
  const share = async (
    place: RatesPlace,
    { remote, notes, exchangeChanges }: Pick<Rates, "notes"> & Partial<Rates> & { readonly remote: RateStore },
    census?: () => Promise<number>,
  ): Promise<Rates> => {
    const counts = place === "memory" ? remote : timed(remote, RATE_OPERATIONS, { ...ports, store: place });
    const store = createSharedRates({
      remote: counts,
      clock,
      burstMs,
      replica,
      replicasBefore,
      census,
      onChange(state, { replicas, cause }) {
        if (state === "shared") log.info({ place, replicas }, "rates are counted together again");
        else
          log.error(
            { place, replicas, cause: describe(cause) },
            "rates cannot be counted together; this replica allows its share",
          );
      },
    });
    await store.join(JOIN_MS);
    return {
      store,
      place,
      isAlone: () => store.state() === "local",
      decidedAlone: () => store.localDecisions(),
      faults: () => store.faults(),
      replicas: () => store.replicas(),
      notes,
      exchangeChanges,
    };
  };
  if (config.redis !== undefined) {
    // Imported on demand: the client has hundreds of modules.
    const { openRedisRates } = await import("../limits/redis.ts");
    const { tls: files, ...where } = config.redis;
    const tls = Object.keys(files).length > 0 ? await openTlsFiles("redis.tls", files, log) : undefined;
    const onEvent = (event: RedisEvent): void => {
      const { address } = event;
      if (event.what === "master") log.info({ address }, "Sentinels name this master of Redis");
      else if (event.state === "back") log.info({ address }, "this node of the Redis Cluster is back or replaced");
      else
        log.error(
          { address },
          "this node of the Redis Cluster is unavailable; this replica allows its share to the accounts on it",
        );
    };
    const remote = await openRedisRates({ ...where, tls, clock, burstMs, startingMs: JOIN_MS + STARTING_MS, onEvent });
    const notes: HealthNotes = { exchange: (note) => remote.exchange(replica, note) };
    if (database.kind === "sqlite") return share("redis", { remote, notes });
    const counted = database.createRates({ burstMs });
    const exchangeChanges: RedisRates["exchangeChanges"] = (...asked) => remote.exchangeChanges(...asked);
    return share("redis", { remote, notes, exchangeChanges }, () => counted.renew({ replica, held: [] }));
  }
  if (database.kind === "postgres")
    return share("postgres", {
      remote: database.createRates({ burstMs, startingMs: JOIN_MS + STARTING_MS }),
      notes: database.createHealthNotes({ replica }),
    });
  if (shared !== undefined) return share("memory", { remote: shared.rates, notes: shared.notes });
  return {
    store: createMemoryRates({ clock, burstMs }),
    place: "memory",
    isAlone: () => false,
    decidedAlone: () => 0,
    faults: () => new Map(),
    replicas: () => 1,
    notes: undefined,
    exchangeChanges: undefined,
  };
}

/** Describes why the shared store is unavailable. The store's messages hold no secret. */
function describe(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  return reason.cause instanceof Error ? `${reason.message} ${reason.cause.message}` : reason.message;
}
