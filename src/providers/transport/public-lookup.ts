import { lookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { isPrivateAddress } from "../../net/private-addresses.ts";

/** The code of our own refusal to connect. */
export const PRIVATE_ADDRESS = "ERR_PRIVATE_ADDRESS";

/** Resolves a name and refuses private addresses, so that the address that was checked is the one connected to. */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, options, (error, address: string | LookupAddress[], family?: number) => {
    const addresses = typeof address === "string" ? [address] : (address ?? []).map((entry) => entry.address);
    if (error === null && addresses.some(isPrivateAddress)) {
      const refused: NodeJS.ErrnoException = new Error(
        `${hostname} leads to a private address; set allow_private if that is meant`,
      );
      refused.code = PRIVATE_ADDRESS;
      return callback(refused, "", 0);
    }
    callback(error, address, family);
  });
};
