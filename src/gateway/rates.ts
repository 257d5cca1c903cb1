import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import { createMemoryRates } from "../limits/memory.ts";
import type { RateStore } from "../limits/rates.ts";
import { createSharedRates } from "../limits/shared-rates.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Where rates are counted: in this process, or together with other replicas, through Redis or PostgreSQL. */
export type RatesPlace = "memory" | "redis" | "postgres";

/** The rates of one process. */
export interface Rates {
  readonly store: RateStore;
  readonly place: RatesPlace;
  /** Whether what is shared is away, so that this process counts its share alone. */
  isAlone(): boolean;
  /** How many requests it has decided on alone so far. */
  decidedAlone(): number;
  /** How many replicas share them, as last seen. */
  replicas(): number;
}

/** How long a start waits for the shared state. */
const JOIN_MS = 5_000;
/** For how long after that Redis may be slow: replicas that start together keep each other waiting. */
const STARTING_MS = 15_000;

interface RatesPorts {
  readonly database: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** This process among the replicas. */
  readonly replica: string;
  /** Whose memory is used in place of this process's. Default: this one's. */
  readonly shared?: RateStore | undefined;
}

/** Opens the rates where the configuration says: Redis if there is one, else PostgreSQL if there is that. */
export async function openRates(config: Config, { database, clock, log, replica, shared }: RatesPorts): Promise<Rates> {
  const { burstMs } = config.limits;
  const share = async (place: RatesPlace, remote: RateStore, census?: () => Promise<number>): Promise<Rates> => {
    const store = createSharedRates({
      remote,
      clock,
      burstMs,
      replica,
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
      replicas: () => store.replicas(),
    };
  };
  if (config.redisUrl !== undefined) {
    // Hundreds of modules, for those who have one.
    const { openRedisRates } = await import("../limits/redis.ts");
    const remote = await openRedisRates({ url: config.redisUrl, clock, burstMs, startingMs: JOIN_MS + STARTING_MS });
    if (database.kind === "sqlite") return share("redis", remote);
    const counted = database.createRates({ burstMs });
    return share("redis", remote, () => counted.renew({ replica, held: [] }));
  }
  if (database.kind === "postgres") return share("postgres", database.createRates({ burstMs }));
  if (shared !== undefined) return share("memory", shared);
  return {
    store: createMemoryRates({ clock, burstMs }),
    place: "memory",
    isAlone: () => false,
    decidedAlone: () => 0,
    replicas: () => 1,
  };
}

/** Why the shared state is away, in the store's words, which hold no secret. */
function describe(reason: unknown): string {
  if (!(reason instanceof Error)) return String(reason);
  return reason.cause instanceof Error ? `${reason.message} ${reason.cause.message}` : reason.message;
}
