import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { toBlockList } from "../inbound/dashboard/client-address.ts";
import { Connections, peerOf } from "../inbound/connections.ts";

/**
 * Descriptors reserved for files, the database, listeners and pipes. The rest is for callers' and providers' connections.
 */
const RESERVED = 100;
/** Connections of the operations port at most; a few probes, monitoring systems and people use it. */
const OPERATIONS = 64;
/** Assumed descriptor limit where the system does not report one. */
const USUAL_DESCRIPTORS = 10_000;
const MOST = 65_536;

/** Limits the connections of this process by the configuration or, by default, by its descriptors. */
export function createConnections({ overload, http }: Pick<Config, "overload" | "http">): Connections {
  const max = overload.maxConnections ?? usualMax(descriptorLimit());
  return new Connections({
    max,
    maxPerAddress: overload.maxConnectionsPerAddress ?? Math.ceil(max / 2),
    clientOf: createClientFinder({ http }),
  });
}

/**
 * Limits the connections of the operations port. Apart from those of callers, so that neither keeps the other away; one address leaves
 * half of them to others.
 */
export function createOperationsConnections({ http }: Pick<Config, "http">): Connections {
  return new Connections({
    max: OPERATIONS,
    maxPerAddress: OPERATIONS / 2,
    clientOf: createClientFinder({ http }),
  });
}

/** Returns a function that finds the client for whom an address counts: none for loopback and `http.trusted_proxies`. */
export function createClientFinder({ http }: Pick<Config, "http">): (address: string) => string | undefined {
  const exempt = toBlockList(["127.0.0.0/8", "::1", ...http.trustedProxies]);
  return (address) => {
    const plain = address.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/i, "");
    const isExempt = isIP(plain) !== 0 && exempt.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
    return isExempt ? undefined : peerOf(address);
  };
}

/** Half of the descriptors that are not reserved, because a call also needs a connection to a provider. */
export function usualMax(descriptors: number): number {
  return Math.min(MOST, Math.max(16, Math.floor((descriptors - RESERVED - OPERATIONS) / 2)));
}

/** Reads the soft limit, which Node raises to the hard limit at its start. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return Number(soft ?? USUAL_DESCRIPTORS);
  } catch {
    return USUAL_DESCRIPTORS;
  }
}
