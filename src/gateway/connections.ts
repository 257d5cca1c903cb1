import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { toBlockList } from "../inbound/dashboard/client-address.ts";
import { Connections, peerOf } from "../inbound/connections.ts";
import { SocketLimit } from "../providers/transport/socket-limit.ts";
import { atIntervals } from "../telemetry/at-intervals.ts";
import type { Logger } from "../telemetry/logger.ts";

/**
 * Descriptors reserved for files, the database, listeners and pipes. The rest is for callers' and providers' connections.
 */
const RESERVED = 100;
/** Connections of the operations port at most; a few probes, monitoring systems and people use it. */
const OPERATIONS = 64;
/** Assumed descriptor limit where the system does not report one. */
const USUAL_DESCRIPTORS = 10_000;
const HINT =
  "raise the limit of open files (LimitNOFILE= of systemd, ulimits of the container, ulimit -n), or lower overload.max_calls";
/** Calls in flight below which the start warns of too few descriptors: more are rarely in flight in one process. */
const FEW_CALLS = 2_000;
/** Bounds of callers' connections. */
const MOST = 65_536;
const LEAST = 16;

/** Limits the connections of this process by the configuration or, by default, by its descriptors. */
export function createConnections({ overload, http }: Pick<Config, "overload" | "http">): Connections {
  const max = maxOfCallers(overload, descriptorLimit());
  return new Connections({
    max,
    maxPerAddress: overload.maxConnectionsPerAddress ?? Math.ceil(max / 2),
    clientOf: createClientFinder({ http }),
  });
}

/**
 * Limits the connections of the operations port apart from callers' connections, so that neither keeps the other away. One
 * address leaves half of them to others.
 */
export function createOperationsConnections({ http }: Pick<Config, "http">): Connections {
  return new Connections({
    max: OPERATIONS,
    maxPerAddress: OPERATIONS / 2,
    clientOf: createClientFinder({ http }),
  });
}

/** Returns a function that finds the client to which an address belongs: none for loopback and `http.trusted_proxies`. */
export function createClientFinder({ http }: Pick<Config, "http">): (address: string) => string | undefined {
  const exempt = toBlockList(["127.0.0.0/8", "::1", ...http.trustedProxies]);
  return (address) => {
    const plain = address.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/i, "");
    const isExempt = isIP(plain) !== 0 && exempt.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
    return isExempt ? undefined : peerOf(address);
  };
}

/** Descriptors for the connections to providers, which calls in flight need. */
export interface ProviderSockets {
  /** Limit of completions of a process: `overload.max_calls`, or as many as its descriptors allow. */
  readonly maxCalls: number;
  readonly sockets: SocketLimit;
}

/**
 * Divides the descriptors that callers leave: a call needs one for its connection to a provider, and a share of calls another one for a
 * hedge. Warns when they are too few for `overload.max_calls` and FEW_CALLS. Without a known limit of the system nothing is limited.
 */
export function createProviderSockets(
  config: Pick<Config, "overload" | "models" | "routes">,
  log: Pick<Logger, "warn">,
  descriptors: number | undefined = descriptorLimit(),
): ProviderSockets {
  const { overload, models, routes } = config;
  const tellExhausted = atIntervals(log, "no file descriptor was left for a connection to a provider");
  const exhausted = (): void => tellExhausted((requests) => ({ open_files: descriptors, requests, hint: HINT }));
  if (descriptors === undefined)
    return { maxCalls: overload.maxCalls, sockets: new SocketLimit({ max: Infinity, exhausted }) };
  // A larger overload.max_connections takes nothing from calls: HTTP/2 and gRPC have many on one connection.
  const others = RESERVED + OPERATIONS + Math.min(maxOfCallers(overload, descriptors), usualMax(descriptors));
  const max = Math.max(LEAST, descriptors - others);
  const perCall = 1 + Math.max(0, ...[...models, ...routes].map(({ hedge }) => hedge?.budget ?? 0));
  const maxCalls = Math.min(overload.maxCalls, Math.floor(max / perCall));
  if (maxCalls < Math.min(overload.maxCalls, FEW_CALLS)) {
    const needed = Math.ceil(overload.maxCalls * perCall);
    const enough = RESERVED + OPERATIONS + needed + (overload.maxConnections ?? needed);
    log.warn(
      { open_files: descriptors, enough, calls: maxCalls, max_calls: overload.maxCalls, hint: HINT },
      "the limit of open files allows fewer calls than overload.max_calls",
    );
  }
  return { maxCalls, sockets: new SocketLimit({ max, exhausted }) };
}

function maxOfCallers(
  { maxConnections }: Pick<Config["overload"], "maxConnections">,
  descriptors = USUAL_DESCRIPTORS,
): number {
  return maxConnections ?? usualMax(descriptors);
}

/** Half of the descriptors that are not reserved, because a call also needs a connection to a provider. */
function usualMax(descriptors: number): number {
  return Math.min(MOST, Math.max(LEAST, Math.floor((descriptors - RESERVED - OPERATIONS) / 2)));
}

/** Reads the soft limit, which Node raises to the hard limit at its start; undefined where the system does not report one. */
function descriptorLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
