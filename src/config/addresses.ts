import { BlockList, isIP } from "node:net";
import { isMetadataAddress, isPrivateAddress } from "../net/private-addresses.ts";
import type { ListenAddress } from "./config.ts";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Parses `host:port` (`[::1]:8080` for IPv6). Undefined when malformed. */
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
  const family = isIP(host);
  return host === "localhost" || (family !== 0 && LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4"));
}

/** Why `baseUrl` must not be called without `allow_private: true`; undefined when it may. */
export function privateReason(baseUrl: URL): string | undefined {
  if (baseUrl.protocol === "http:") return "plain http";
  const host = baseUrl.hostname.replace(/^\[|\]$|\.$/g, "");
  if (isIP(host) !== 0) return isPrivateAddress(host) ? "a private address" : undefined;
  // A name without a dot, or under these endings, only means something inside a network.
  const isLocalName = !host.includes(".") || /\.(localhost|local|internal|lan|home\.arpa)$/.test(host);
  return isLocalName ? "a name of a private network" : undefined;
}

/** Whether `baseUrl` has a link-local address, or one under which a cloud tells a machine its credentials. */
export function isMetadata(baseUrl: string): boolean {
  const host = URL.parse(baseUrl)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  return isIP(host) !== 0 && isMetadataAddress(host);
}
