import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { vi } from "vitest";
import { findFreePort } from "./free-port.ts";
import { clientOptions, launchRedis, type RedisLaunch, type RedisServer } from "./redis.ts";

/** A cluster of three masters, each with a replica. All have a password. */
export interface RedisClusterServers {
  /** URL with the addresses of all nodes. */
  readonly url: string;
  readonly servers: readonly RedisServer[];
  slotOf(key: string): Promise<number>;
  /** The master of a slot. */
  masterOf(slot: number): Promise<RedisServer>;
  replicaOf(master: RedisServer): Promise<RedisServer>;
  /** Empties all masters. */
  clear(): Promise<void>;
  /** Moves a slot with its keys, and waits between the steps. */
  moveSlot(slot: number, to: RedisServer, pause: () => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

const SECRET = "cluster-secret";
/** Time after which the nodes promote the replica of a silent master. Longer than a busy machine suspends a process. */
const NODE_TIMEOUT_MS = 2_000;

/**
 * Starts the cluster; the caller stops it. `options` are additional options of each node. With TLS the nodes announce
 * the name `localhost`, because their certificate does not have their address.
 */
export async function launchRedisCluster(
  options: readonly string[] = [],
  launch: Pick<RedisLaunch, "program" | "tls"> = {},
): Promise<RedisClusterServers> {
  const { tls } = launch;
  const names =
    tls === undefined
      ? []
      : ["--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type", "hostname"];
  const servers = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const cluster = ["--cluster-enabled", "yes", "--cluster-port", String(await findFreePort())];
      const auth = ["--requirepass", SECRET, "--masterauth", SECRET];
      const all = [...cluster, ...auth, ...names, "--cluster-node-timeout", String(NODE_TIMEOUT_MS), ...options];
      return launchRedis(all, { ...launch, password: SECRET });
    }),
  );
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`);
  const create = [...clientOptions(tls), "--cluster", "create", ...hosts, "--cluster-replicas", "1", "--cluster-yes"];
  const env = { ...process.env, REDISCLI_AUTH: SECRET };
  await promisify(execFile)("redis-cli", create, { timeout: 60_000, env });
  await vi.waitFor(
    async () => {
      const all = await Promise.all(servers.map((server) => server.ask(["CLUSTER", "SHARDS"])));
      const states = await Promise.all(servers.map((server) => server.ask(["CLUSTER", "INFO"])));
      const isLinked = states.every((lines) => lines[0]!.startsWith("cluster_state:ok"));
      // A replica can be promoted only once its master lists it as online.
      if (!isLinked || !all.every((lines) => lines.filter((line) => line === "online").length === 6))
        throw new Error("the nodes of the cluster do not find each other");
    },
    { timeout: 30_000 },
  );
  const ofPort = (port: string | undefined): RedisServer => servers.find((server) => String(server.port) === port)!;
  const find = async (server: RedisServer, slot: number): Promise<RedisServer> => {
    for (const line of await server.ask(["CLUSTER", "NODES"])) {
      const [, address = "", flags = "", , , , , state, ...ranges] = line.split(" ");
      const hasSlot = ranges.some((range) => {
        const [from, to = from] = range.split("-").map(Number);
        return slot >= from! && slot <= to!;
      });
      if (/master/.test(flags) && !/fail/.test(flags) && state === "connected" && hasSlot)
        return ofPort(/:(\d+)@/.exec(address)?.[1]);
    }
    throw new Error(`slot ${slot} has no master`);
  };
  // Asks all nodes and takes the first answer, because one of them may hang.
  const masterOf = (slot: number): Promise<RedisServer> => Promise.any(servers.map((server) => find(server, slot)));
  return {
    url:
      tls === undefined
        ? `redis://:${SECRET}@${hosts.join(",")}`
        : `rediss://:${SECRET}@${servers.map(({ port }) => `localhost:${port}`).join(",")}`,
    servers,
    slotOf: async (key) => Number((await servers[0]!.ask(["CLUSTER", "KEYSLOT", key]))[0]),
    masterOf,
    async replicaOf(master) {
      const [id] = await master.ask(["CLUSTER", "MYID"]);
      const [line = ""] = await master.ask(["CLUSTER", "REPLICAS", id!]);
      return ofPort(/:(\d+)@/.exec(line)?.[1]);
    },
    async clear() {
      // Replicas refuse FLUSHALL, which does no harm.
      await Promise.all(servers.map((server) => server.ask(["FLUSHALL"])));
    },
    async moveSlot(slot, to, pause) {
      const from = await masterOf(slot);
      const [fromId, toId] = await Promise.all(
        [from, to].map(async (node) => (await node.ask(["CLUSTER", "MYID"]))[0]!),
      );
      await to.ask(["CLUSTER", "SETSLOT", String(slot), "IMPORTING", fromId!]);
      await from.ask(["CLUSTER", "SETSLOT", String(slot), "MIGRATING", toId!]);
      await pause();
      for (;;) {
        const keys = await from.ask(["CLUSTER", "GETKEYSINSLOT", String(slot), "1"]);
        if (keys.length === 0) break;
        await from.ask(["MIGRATE", "127.0.0.1", String(to.port), "", "0", "5000", "AUTH", SECRET, "KEYS", ...keys]);
        await pause();
      }
      for (const node of [to, from]) await node.ask(["CLUSTER", "SETSLOT", String(slot), "NODE", toId!]);
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
