import { BlockList, isIP } from "node:net";
import { networkOf } from "../../access/address.ts";

/** The parts of a request that give the client's address. */
export interface Arrival {
  readonly remoteAddress: string | undefined;
  /** All `X-Forwarded-For` headers, joined with commas. */
  readonly forwardedFor: string | undefined;
}

export interface NetworkFinderOptions {
  /** Addresses or CIDR ranges of trusted proxies, whose `X-Forwarded-For` is used. */
  readonly trustedProxies: readonly string[];
  /** Called once, when the header arrives and no proxy is trusted. */
  readonly onUntrusted: () => void;
}

/**
 * Finds the network of the client behind trusted proxies. The header is read from the right, up to the first address that is
 * not a trusted proxy: only trusted proxies wrote that part. Throws a TypeError for an invalid range.
 */
export function createNetworkFinder({
  trustedProxies,
  onUntrusted,
}: NetworkFinderOptions): (arrival: Arrival) => string {
  let isReported = trustedProxies.length > 0;
  const trusted = toBlockList(trustedProxies);
  const isTrusted = (address: string): boolean => trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  return ({ remoteAddress, forwardedFor }) => {
    if (!isReported && forwardedFor !== undefined) {
      isReported = true;
      onUntrusted();
    }
    let client = toAddress(remoteAddress ?? "");
    if (client === undefined) return networkOf("");
    const hops = (forwardedFor ?? "").split(",").map((hop) => toAddress(hop.trim()));
    while (isTrusted(client)) {
      const next: string | undefined = hops.pop();
      if (next === undefined) break;
      client = next;
    }
    return networkOf(client);
  };
}

/** Parses addresses and CIDR ranges into a block list. Throws a TypeError for an invalid range. */
export function toBlockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", length] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    try {
      if (length === undefined) list.addAddress(address, family);
      else list.addSubnet(address, Number(length), family);
    } catch (cause) {
      throw new TypeError(`trusted proxies: ${range} is not an address or a range such as 10.0.0.0/8`, { cause });
    }
  }
  return list;
}

/** An address without port, brackets and zone, mapped IPv4 as IPv4; undefined for anything else. */
function toAddress(text: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d+)?|([^:]*):\d+)$/.exec(text) ?? [];
  const address = (bracketed ?? plain ?? text).replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/i, "");
  return isIP(address) === 0 ? undefined : address;
}
