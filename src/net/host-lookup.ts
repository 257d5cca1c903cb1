import type { LookupAddress, LookupAllOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { isMetadataAddress, isPrivateAddress } from "./private-addresses.ts";

/** Error code of a refused address. */
export const PRIVATE_ADDRESS = "ERR_PRIVATE_ADDRESS";

/** Milliseconds for which found addresses are cached. */
const KEPT_MS = 5000;

/**
 * Looks hosts up for sockets, with at most one lookup per host in flight. Sockets share that lookup, and addresses found in the last
 * KEPT_MS. The system's resolver occupies a thread of libuv until name servers answer or time out, and libuv uses only half of its
 * threads for lookups. The lookup of a socket that gives up goes on, for the next socket. Failures are not cached. Holds one entry per
 * configured host. `resolve` gets the options of the first socket, which are the same for all sockets.
 */
export function sharedLookup(
  resolve: (host: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>,
): LookupFunction {
  const lookups = new Map<string, ReturnType<typeof resolve>>();
  const begin = (host: string, options: LookupAllOptions): ReturnType<typeof resolve> => {
    const found = resolve(host, options);
    lookups.set(host, found);
    const forget = () => lookups.delete(host);
    found.then(() => setTimeout(forget, KEPT_MS).unref(), forget);
    return found;
  };
  return (host, options, callback) => {
    const found = lookups.get(host) ?? begin(host, { ...options, all: true });
    callbackify(() => found)((error, addresses) => {
      if (error !== null) return callback(error, "", 0);
      if (options.all === true) return callback(null, [...addresses]);
      callback(null, addresses[0]!.address, addresses[0]!.family);
    });
  };
}

/** Resolves with the system's resolver. */
export const lookupHost = sharedLookup(lookup);

/** Refuses private addresses. */
export const lookupPublic = refusing(
  isPrivateAddress,
  "resolves to a private address; set allow_private to permit this",
);

/** Refuses the addresses of clouds' metadata services, which give a machine its credentials. */
export const lookupWithoutMetadata = refusing(
  isMetadataAddress,
  "resolves to a link-local address, or to that of a cloud's metadata",
);

/** A lookup that refuses some addresses. The socket connects to the checked address, which prevents DNS rebinding. */
function refusing(isRefused: (address: string) => boolean, reason: string): LookupFunction {
  return (host, options, callback) =>
    lookupHost(host, options, (error, address, family) => {
      const addresses = typeof address === "string" ? [address] : address.map((entry) => entry.address);
      if (error === null && addresses.some(isRefused))
        return callback(Object.assign(new Error(`${host} ${reason}`), { code: PRIVATE_ADDRESS }), "", 0);
      callback(error, address, family);
    });
}
