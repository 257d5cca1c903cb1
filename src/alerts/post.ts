import { lookup } from "node:dns/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { sharedLookup } from "../net/host-lookup.ts";
import { limitInformational, TOO_MANY } from "../net/informational.ts";
import { isMetadataAddress, isPrivateAddress } from "../net/private-addresses.ts";
import { Turns } from "../scheduling/turns.ts";

/**
 * Names that are looked up at a time: silent name servers occupy threads of the process, which looks up the names of providers and of the
 * database with the others.
 */
const LOOKUPS = 2;

/** Longest time of one sending, from the look-up of the name to the answer. */
const LIMIT_MS = 10_000;

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether private addresses are allowed; those of clouds' credentials never are. */
  readonly allowsPrivate: boolean;
}

/**
 * Posts JSON and returns the status of the answer. Follows no redirect, reads no body. The address is checked after the name was looked
 * up, so that a name cannot change its meaning meanwhile. Rejects without an answer, with a message for people and without the address.
 */
export async function post({ url, headers, body, allowsPrivate }: Post): Promise<number> {
  const { protocol, hostname } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && isForbidden(host, allowsPrivate)) throw new Error(PRIVATE);
  const options: RequestOptions = {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": "Parley",
    },
    agent: false,
    signal: AbortSignal.timeout(LIMIT_MS),
    lookup: guardedLookup(allowsPrivate),
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const request = (protocol === "https:" ? requestHttps : requestHttp)(url, options, (response) => {
    resolve(response.statusCode ?? 0);
    response.destroy();
  });
  limitInformational(request, reject);
  request.on("error", (error) => reject(new Error(describe(error), { cause: error })));
  request.end(body);
  return promise;
}

const PRIVATE = "Its address is private: alerts.allow_private in the configuration would allow that.";

function isForbidden(address: string, allowsPrivate: boolean): boolean {
  return isMetadataAddress(address) || (!allowsPrivate && isPrivateAddress(address));
}

const turns = new Turns(LOOKUPS);
const never = new AbortController().signal;
/** One at a time for each name. An abandoned look-up ends by the resolver's own limits. */
const lookupReceiver = sharedLookup((host, options) => turns.run(host, never, () => lookup(host, options)));

function guardedLookup(allowsPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookupReceiver(hostname, options, (error, found, family) => {
      const addresses = typeof found === "string" ? [found] : found.map(({ address }) => address);
      if (error === null && addresses.some((address) => isForbidden(address, allowsPrivate)))
        return callback(new Error(PRIVATE), []);
      callback(error, found, family);
    });
  };
}

function describe(error: NodeJS.ErrnoException): string {
  if (error.message === PRIVATE || error.message === TOO_MANY) return error.message;
  if (error.name === "AbortError" || error.name === "TimeoutError")
    return `There was no answer in ${LIMIT_MS / 1000} s.`;
  if (error.code === "ENOTFOUND") return "Its name is not known (ENOTFOUND).";
  return `It could not be reached (${error.code ?? error.name}).`;
}
