import { isIP } from "node:net";
import type { HandlerContext } from "@connectrpc/connect";
import type { PasskeySite } from "../../access/factors/passkeys.ts";

/** Where passkeys are valid, by the host of a request; undefined where there are none. */
export type SiteFinder = (context: Pick<HandlerContext, "requestHeader">) => PasskeySite | undefined;

/**
 * Browsers have passkeys for host names, over https; over plain http only for localhost. So they are valid at the public URL, and at
 * localhost, whose port is that of the request.
 */
export function createSiteFinder(publicUrl: URL | undefined, { hasTls }: { readonly hasTls: boolean }): SiteFinder {
  return ({ requestHeader }) => {
    const host = (requestHeader.get("host") ?? "").toLowerCase();
    if (publicUrl !== undefined && host === publicUrl.host && publicUrl.hostname !== "localhost") {
      const { protocol, hostname, origin } = publicUrl;
      const isName = isIP(hostname.replace(/^\[(.*)\]$/, "$1")) === 0;
      return protocol === "https:" && isName ? { rpId: hostname, origin } : undefined;
    }
    if (!/^localhost(:\d{1,5})?$/.test(host)) return undefined;
    const protocol = publicUrl?.host === host ? publicUrl.protocol : hasTls ? "https:" : "http:";
    return { rpId: "localhost", origin: new URL(`${protocol}//${host}`).origin };
  };
}
