import { BROWSER_KNOWN_MS } from "../../access/known-browsers.ts";
import { PENDING_MS } from "../../access/oidc/pending.ts";
import type { SignInRules } from "../../access/sign-in-rules.ts";

/** A cookie with a secret. */
interface Cookie {
  /** Reads the secret from a `Cookie` header; undefined without one, or with two. */
  read(header: string | undefined): string | undefined;
  /** A `Set-Cookie` header for a new secret. */
  write(secret: string): string;
  /** A `Set-Cookie` header that removes it. */
  clear(): string;
}

/** The dashboard's cookies. */
export interface Cookies {
  /** Session ID. */
  readonly session: Cookie;
  /** Identifies a browser with an earlier sign-in; grants nothing. Outlives the session. */
  readonly browser: Cookie;
  /** A sign-in at the OpenID provider that has begun. */
  readonly pending: Cookie;
}

/**
 * Creates the cookies. With https they are `__Host-sid` and `__Host-browser`, which browsers accept for exactly this host over
 * TLS only; with plain http `sid` and `browser`. They are `HttpOnly`, and not sent with requests of other sites, except that
 * links of other sites send those of the session and of the pending sign-in.
 */
export function createCookies(isSecure: boolean, { sessionMs }: Pick<SignInRules, "sessionMs">): Cookies {
  const prefix = isSecure ? "__Host-" : "";
  const secure = isSecure ? "; Secure" : "";
  const session = { name: `${prefix}sid`, maxAgeMs: sessionMs };
  const browser = { name: `${prefix}browser`, maxAgeMs: BROWSER_KNOWN_MS };
  return {
    session: createCookie({ ...session, attributes: `Path=/; HttpOnly; SameSite=Lax${secure}` }),
    browser: createCookie({ ...browser, attributes: `Path=/; HttpOnly; SameSite=Strict${secure}` }),
    pending: createCookie({
      name: `${prefix}oidc`,
      maxAgeMs: PENDING_MS,
      attributes: `Path=/; HttpOnly; SameSite=Lax${secure}`,
    }),
  };
}

interface CookieOptions {
  readonly name: string;
  readonly maxAgeMs: number;
  readonly attributes: string;
}

function createCookie({ name, maxAgeMs, attributes }: CookieOptions): Cookie {
  return {
    read(header = "") {
      const values = header.split(";").flatMap((pair) => {
        const at = pair.indexOf("=");
        return at >= 0 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
      });
      // A second one was planted for another path or domain.
      return values.length === 1 ? values[0] : undefined;
    },
    write: (secret) => `${name}=${secret}; Max-Age=${maxAgeMs / 1000}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
