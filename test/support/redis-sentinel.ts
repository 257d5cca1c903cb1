import { vi } from "vitest";
import { launchRedis, type RedisLaunch, type RedisServer } from "./redis.ts";

/** A master, a replica, and three Sentinels that promote it after a second and a half. All have passwords. */
export interface RedisSentinelServers {
  /** URL with the addresses of all Sentinels and the password of the servers. */
  readonly url: string;
  readonly place: { readonly mode: "sentinel"; readonly master: string; readonly password: string };
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  /** Returns the server that a majority of the Sentinels reports as the master. */
  master(): Promise<RedisServer>;
  stop(): Promise<void>;
}

const MASTER = "parley-rates";
const SERVER_SECRET = "server-secret";
const SENTINEL_SECRET = "sentinel-secret";
const DOWN_AFTER_MS = 1_500;

/**
 * Starts the servers; the caller stops them. With TLS they announce the name `localhost`, because their certificate
 * does not have their address.
 */
export async function launchRedisSentinel(
  options: Pick<RedisLaunch, "program" | "tls"> = {},
): Promise<RedisSentinelServers> {
  const host = options.tls === undefined ? "127.0.0.1" : "localhost";
  const auth = ["--requirepass", SERVER_SECRET, "--masterauth", SERVER_SECRET, "--repl-diskless-sync-delay", "0"];
  const announced = [...auth, "--replica-announce-ip", host];
  const launch = { ...options, password: SERVER_SECRET };
  const first = await launchRedis(announced, launch);
  const second = await launchRedis([...announced, "--replicaof", `${host} ${first.port}`], launch);
  const servers = [first, second];
  const config = [
    ...(options.tls === undefined ? [] : ["sentinel resolve-hostnames yes", "sentinel announce-hostnames yes"]),
    `sentinel monitor ${MASTER} ${host} ${first.port} 2`,
    `sentinel auth-pass ${MASTER} ${SERVER_SECRET}`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER} 10000`,
    `requirepass ${SENTINEL_SECRET}`,
    `sentinel sentinel-pass ${SENTINEL_SECRET}`,
    "",
  ].join("\n");
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, () => launchRedis(["--sentinel"], { ...options, password: SENTINEL_SECRET, config })),
  );
  const isComplete = async (sentinel: RedisServer): Promise<boolean> => {
    const lines = await sentinel.ask(["SENTINEL", "MASTER", MASTER]);
    const valueOf = (name: string): string | undefined => lines[lines.indexOf(name) + 1];
    return valueOf("num-slaves") === "1" && valueOf("num-other-sentinels") === "2" && valueOf("flags") === "master";
  };
  await vi.waitFor(
    async () => {
      if (!(await Promise.all(sentinels.map(isComplete))).every(Boolean))
        throw new Error("the Sentinels do not find each other and the replica");
    },
    { timeout: 30_000 },
  );
  return {
    url: `${options.tls === undefined ? "redis" : "rediss"}://:${SERVER_SECRET}@${sentinels.map(({ port }) => `${host}:${port}`).join(",")}`,
    place: { mode: "sentinel", master: MASTER, password: SENTINEL_SECRET },
    servers,
    sentinels,
    async master() {
      const ports = await Promise.all(
        sentinels.map(async (sentinel) => (await sentinel.ask(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]))[1]),
      );
      const named = servers.find(({ port }) => ports.filter((one) => one === String(port)).length >= 2);
      if (named === undefined) throw new Error(`the Sentinels disagree: ${ports.join(", ")}`);
      return named;
    },
    async stop() {
      await Promise.all([...servers, ...sentinels].map((server) => server.stop()));
    },
  };
}
