import { lookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { isPrivateAddress } from "../../net/private-addresses.ts";

/** Error code of a refused private address. */
export const PRIVATE_ADDRESS = "ERR_PRIVATE_ADDRESS";

/** Resolves a name and refuses private addresses. The checked address is the one that is connected to (no DNS rebinding). */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, options, (error, address: string | LookupAddress[], family?: number) => {
    const addresses = typeof address === "string" ? [address] : (address ?? []).map((entry) => entry.address);
    if (error === null && addresses.some(isPrivateAddress)) {
      const refused: NodeJS.ErrnoException = new Error(
        `${hostname} resolves to a private address; set allow_private to permit this`,
      );
      refused.code = PRIVATE_ADDRESS;
      return callback(refused, "", 0);
    }
    callback(error, address, family);
  });
};
