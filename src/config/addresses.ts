import { BlockList, isIP } from "node:net";
import type { ListenAddress } from "./config.ts";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Addresses that no public service has: loopback, private, carrier-grade, link-local, multicast, reserved. */
const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of [
  ["::", 96],
  ["64:ff9b::", 96],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv6");
}

/** Reads `host:port` (`[::1]:8080` for IPv6). Undefined when it is not that. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const host = match[1] ?? match[2]!;
  const port = Number(match[3]);
  if (port > 65_535 || (match[1] !== undefined && isIP(host) !== 6)) return undefined;
  return { host, port };
}

/** Whether only this machine can reach a listener on `host`. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || contains(LOOPBACK, host);
}

/** Why `baseUrl` must not be called without `allow_private: true`; undefined when it may. */
export function privateReason(baseUrl: URL): string | undefined {
  if (baseUrl.protocol === "http:") return "plain http";
  const host = baseUrl.hostname.replace(/^\[|\]$|\.$/g, "");
  if (isIP(host) !== 0) return contains(PRIVATE, host) ? "a private address" : undefined;
  // A name without a dot, or under these endings, only means something inside a network.
  const isLocalName = !host.includes(".") || /\.(localhost|local|internal|lan|home\.arpa)$/.test(host);
  return isLocalName ? "a name of a private network" : undefined;
}

function contains(list: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 6 ? "ipv6" : "ipv4");
}
