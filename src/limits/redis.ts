import type { Clock } from "../core/clock.ts";
import { type HealthNote, NOTE_LASTS_MS, readHealthNotes, writeHealthNote } from "../core/health-notes.ts";
import type { WatchedTlsFiles } from "../net/tls-files.ts";
import { type BucketSize, placesOf, sizeOf, toBucketLevel, UNITS, unitsOf } from "./bucket.ts";
import {
  LEASE_MS,
  type RateDecision,
  type RateDemand,
  type RateRelease,
  type RateStore,
  RateStoreError,
  type RateSubject,
  type SubjectLevels,
} from "./rates.ts";
import { splitHosts } from "../net/hosts.ts";
import { RedisCluster } from "./redis-cluster.ts";
import { RedisConnection, type RedisServerKind, type ScriptReply, type ScriptRunner } from "./redis-connection.ts";
import { CHANGES_PAGE, redisScripts } from "./redis-scripts.ts";
import { RedisSentinel } from "./redis-sentinel.ts";

const REPLICAS_KEY = "parley:replicas";
const NOTES_KEY = "parley:health";
const CHANGES_KEY = "parley:changed-keys";
/** TTL of a change: longer than a process may serve from its known keys (`outage.serve_ms`). */
const CHANGE_LASTS_MS = 25 * 60 * 60 * 1000;
/** Limit of units that one command renews, so that no command blocks Redis for long. */
const RENEWED_AT_ONCE = 500;
/** Longest wait for the first connection. */
const FIRST_CONNECTION_MS = 1000;
const LIMITS = ["requests", "tokens", "concurrency"] as const;

/** Where rates are in Redis: in one server, in the masters of a cluster, or in the master that Sentinels name. */
export type RedisPlace =
  | { readonly mode: "server" | "cluster" }
  | {
      readonly mode: "sentinel";
      /** Name of the master in the configuration of the Sentinels. */
      readonly master: string;
      /** Credentials of the Sentinels themselves; those of the servers are in the URL. */
      readonly username?: string | undefined;
      readonly password?: string | undefined;
    };

/** An event of the servers, for the log. */
export type RedisEvent =
  | { readonly what: "master"; readonly address: string }
  | { readonly what: "node"; readonly address: string; readonly state: "away" | "back" };

export interface RedisRatesOptions {
  /**
   * `redis://[user:password@]host:port/database`, or `rediss://` with TLS. Several hosts, separated by commas, are nodes of a
   * cluster or Sentinels. Never logged.
   */
  readonly url: string;
  /** Default: one server. */
  readonly place?: RedisPlace | undefined;
  readonly onEvent?: ((event: RedisEvent) => void) | undefined;
  /** For a `rediss:` address: authorities and the own certificate. Closed with the store. Default: Node's authorities. */
  readonly tls?: WatchedTlsFiles | undefined;
  readonly clock: Clock;
  /** Capacity of request buckets, as time. The same on all replicas. */
  readonly burstMs: number;
  /** Time limit of a command in milliseconds. Default: 50. */
  readonly commandMs?: number;
  /** Time from now in which commands may take half a second (`RedisConnectionOptions.startingMs`). Default: 0. */
  readonly startingMs?: number;
  /** Milliseconds in place of the server's time, for tests. */
  readonly nowMs?: () => number;
}

/** Rates in Redis, and the health notes and key changes that replicas exchange there. */
export interface RedisRates extends RateStore {
  /** As `HealthNotes.exchange`, for the replica with this ID. */
  exchange(replica: string, note: HealthNote): Promise<readonly HealthNote[]>;
  /** Adds the hashes of API keys that have just changed, and returns a page of the changes since `sinceMs` by Redis' clock. */
  exchangeChanges(changed: readonly string[], sinceMs: number): Promise<ChangesPage>;
}

/** API keys that any process of the installation has changed in the last CHANGE_LASTS_MS, oldest first. */
export interface ChangesPage {
  readonly changes: readonly { readonly hash: string; readonly atMs: number }[];
  /** Redis' time. */
  readonly nowMs: number;
  /** Argument for the next page, and whether that page exists now. */
  readonly sinceMs: number;
  readonly hasMore: boolean;
}

/**
 * State of rates in Redis or Valkey, by its clock. Without an answer, methods reject with a RateStoreError within 50 ms, or 100 ms
 * for a command that a cluster redirects. Opening rejects when the server is of another kind than `place`. Reconnects until it
 * is closed.
 */
export async function openRedisRates({
  url,
  tls,
  clock,
  burstMs,
  nowMs,
  place = { mode: "server" },
  onEvent,
  ...times
}: RedisRatesOptions): Promise<RedisRates> {
  const scripts = Object.values(redisScripts);
  const connection = await connect({ url, place, onEvent, options: { tls, clock, scripts, ...times } });
  const head = (third: string): string[] => [
    nowMs === undefined ? "" : String(Math.floor(nowMs())),
    String(LEASE_MS),
    third,
  ];

  const release = async (given: RateRelease): Promise<void> => {
    const args = [...head(given.id), ...given.subjects.flatMap((subject) => toGains(subject, given, burstMs))];
    await connection.run(redisScripts.release, { keys: toKeys(given.subjects), args });
  };

  return {
    release,
    async exchange(replica, note) {
      const args = [head("")[0]!, String(NOTE_LASTS_MS), replica, writeHealthNote(note)];
      const texts = await connection.run(redisScripts.notes, { keys: [NOTES_KEY], args });
      return readHealthNotes(Array.isArray(texts) ? texts.filter((text) => typeof text === "string") : []);
    },
    async exchangeChanges(changed, sinceMs) {
      const args = [head("")[0]!, String(CHANGE_LASTS_MS), String(sinceMs), ...changed];
      const reply = await connection.run(redisScripts.changes, { keys: [CHANGES_KEY], args });
      return readChanges(reply, sinceMs);
    },
    async take(demand) {
      const args = [...head(demand.id), ...demand.subjects.flatMap((subject) => toNeeds(subject, demand, burstMs))];
      // The request was decided locally in the meantime, and would never release this reservation.
      const onLate = async (reply: ScriptReply): Promise<void> => {
        const { id, subjects, tokens } = demand;
        if (readDecision(reply, demand, burstMs).admitted)
          await release({ id, subjects, reservedTokens: tokens, usedTokens: 0, usedRequests: 0 });
      };
      const reply = await connection.run(redisScripts.take, { keys: toKeys(demand.subjects), args, onLate });
      return readDecision(reply, demand, burstMs);
    },
    async renew({ replica, held }) {
      const join = connection.run(redisScripts.join, { keys: [REPLICAS_KEY], args: head(replica) });
      const renewals: Promise<ScriptReply>[] = [];
      // All commands are sent at once: a unit must not be renewed after its release.
      for (const places of Map.groupBy(held, ({ accountId }) => accountId).values()) {
        for (let from = 0; from < places.length; from += RENEWED_AT_ONCE) {
          const some = places.slice(from, from + RENEWED_AT_ONCE);
          const args = [...head(""), ...some.map(({ id }) => id)];
          renewals.push(connection.run(redisScripts.renew, { keys: some.map(toPlacesKey), args }));
        }
      }
      const [count] = await Promise.all([join, ...renewals]);
      if (typeof count !== "number")
        throw new RateStoreError("Redis answered something else than a number of replicas.");
      return Math.max(count, 1);
    },
    async close() {
      tls?.close();
      connection.close();
    },
  };
}

interface Connecting extends Pick<RedisRatesOptions, "url" | "onEvent"> {
  readonly place: RedisPlace;
  readonly options: Omit<ConstructorParameters<typeof RedisConnection>[0], "url">;
}

/** Connects, and waits at most FIRST_CONNECTION_MS for the connection. */
async function connect({ url, place, onEvent, options }: Connecting): Promise<ScriptRunner> {
  const urls = splitHosts(url);
  // Checked here, because the client's error would show the URL.
  if (urls === undefined || urls.some(({ protocol }) => !/^rediss?:$/.test(protocol)))
    throw new RateStoreError("The URL of Redis is not one: it has to look like redis://host:6379.");
  if (place.mode === "sentinel") {
    const onMaster = (address: string): void => onEvent?.({ what: "master", address });
    const sentinel = new RedisSentinel({ ...options, ...place, urls, onMaster });
    await sentinel.settled(FIRST_CONNECTION_MS);
    return sentinel;
  }
  const onNode = (address: string, state: "away" | "back"): void => onEvent?.({ what: "node", address, state });
  const connection =
    place.mode === "cluster"
      ? new RedisCluster({ ...options, urls, onNode })
      : new RedisConnection({ ...options, url: urls[0]!.href });
  await connection.settled(FIRST_CONNECTION_MS);
  const kind = await connection.serverKind();
  const expected: RedisServerKind = place.mode === "cluster" ? "cluster" : "standalone";
  if (kind === undefined || kind === expected) return connection;
  connection.close();
  throw new RateStoreError(
    `redis.url names ${KINDS[kind]}, and redis.mode is ${place.mode}: set it to ${MODES[kind]}.`,
  );
}

const KINDS: Readonly<Record<RedisServerKind, string>> = {
  standalone: "a server that is not part of a cluster",
  cluster: "a node of a Redis Cluster",
  sentinel: "a Sentinel",
};
const MODES: Readonly<Record<RedisServerKind, RedisPlace["mode"]>> = {
  standalone: "server",
  cluster: "cluster",
  sentinel: "sentinel",
};

/** Prefix with the account as its hash tag: a script may only use keys of one slot, and a reservation has a key and its account. */
function toPrefix({ accountId }: Pick<RateSubject, "accountId">): string {
  return `parley:{${accountId}}:`;
}

function toPlacesKey(subject: Pick<RateSubject, "accountId" | "subject">): string {
  return `${toPrefix(subject)}places:${subject.subject}`;
}

function toKeys(subjects: readonly RateSubject[]): string[] {
  return subjects.flatMap((one) => [`${toPrefix(one)}buckets:${one.subject}`, toPlacesKey(one)]);
}

function toNeeds(subject: RateSubject, { tokens }: RateDemand, burstMs: number): string[] {
  const tokensSize = sizeOf("tokens", subject, burstMs);
  return [
    ...toSizeArgs(sizeOf("requests", subject, burstMs)),
    String(UNITS),
    ...toSizeArgs(tokensSize),
    tokensSize === undefined || tokens <= 0 ? "" : String(unitsOf(tokens, tokensSize)),
    String(placesOf(subject) ?? 0),
  ];
}

function toGains(subject: RateSubject, release: RateRelease, burstMs: number): string[] {
  const { reservedTokens, usedTokens, usedRequests = 1 } = release;
  const tokensSize = sizeOf("tokens", subject, burstMs);
  return [
    ...toSizeArgs(sizeOf("requests", subject, burstMs)),
    String((1 - usedRequests) * UNITS),
    ...toSizeArgs(tokensSize),
    tokensSize === undefined ? "0" : String(unitsOf(reservedTokens, tokensSize) - usedTokens * UNITS),
  ];
}

function toSizeArgs(size: BucketSize | undefined): string[] {
  return [String(size?.capacity ?? 0), String(size?.perMinute ?? 0)];
}

function readDecision(reply: ScriptReply, { subjects }: RateDemand, burstMs: number): RateDecision {
  if (!isNumbers(reply) || reply.length !== 3 + 2 * subjects.length)
    throw new RateStoreError("Redis answered something else than a decision.");
  const [by = 0, kind = 0, retryAfterMs = 0] = reply;
  const levels = subjects.map((subject, index): SubjectLevels => {
    const toLevel = (bucket: "requests" | "tokens", at: number) => {
      const size = sizeOf(bucket, subject, burstMs);
      return size && toBucketLevel({ level: reply[at] ?? 0, at: 0 }, size);
    };
    return {
      subject: subject.subject,
      requests: toLevel("requests", 3 + 2 * index),
      tokens: toLevel("tokens", 4 + 2 * index),
    };
  });
  const subject = subjects[by - 1]?.subject;
  const limit = LIMITS[kind - 1];
  if (subject === undefined || limit === undefined) return { admitted: true, levels };
  return { admitted: false, subject, limit, retryAfterMs, levels };
}

function readChanges(reply: ScriptReply, sinceMs: number): ChangesPage {
  const [now, ...found] = Array.isArray(reply) ? reply.map(String) : [];
  if (now === undefined || found.length % 2 !== 0)
    throw new RateStoreError("Redis answered something else than changes.");
  const changes = Array.from({ length: found.length / 2 }, (_, index) => {
    return { hash: found[2 * index]!, atMs: Number(found[2 * index + 1]) };
  });
  const nowMs = Number(now);
  if (changes.length < CHANGES_PAGE) return { changes, nowMs, sinceMs: nowMs, hasMore: false };
  // Much fewer keys change in one millisecond than fit into a page.
  return { changes, nowMs, sinceMs: Math.max(changes.at(-1)!.atMs, sinceMs + 1), hasMore: true };
}

function isNumbers(reply: ScriptReply): reply is readonly number[] {
  return Array.isArray(reply) && reply.every((item) => typeof item === "number");
}
