import { BROWSER_KNOWN_MS } from "../../access/known-browsers.ts";
import { SESSION_LIFETIME_MS } from "../../access/sessions.ts";

/** A cookie that holds one secret. */
export interface Cookie {
  /** The secret in a `Cookie` header; undefined when there is none, or more than one. */
  read(header: string | undefined): string | undefined;
  /** A `Set-Cookie` header for a new secret. */
  write(secret: string): string;
  /** A `Set-Cookie` header that removes it. */
  clear(): string;
}

/** The console's cookies. */
export interface Cookies {
  /** Holds a session's ID. */
  readonly session: Cookie;
  /** Tells a browser that somebody has signed in with before; proves nothing else. Stays when the session ends. */
  readonly browser: Cookie;
}

/**
 * With https their names are `__Host-sid` and `__Host-browser`, which browsers accept only for exactly this host and over TLS;
 * on plain http, which is for the loopback interface, `sid` and `browser`. Scripts never see them, and other sites' pages do
 * not send them along with their requests.
 */
export function createCookies(isSecure: boolean): Cookies {
  const prefix = isSecure ? "__Host-" : "";
  const secure = isSecure ? "; Secure" : "";
  const session = { name: `${prefix}sid`, maxAgeMs: SESSION_LIFETIME_MS };
  const browser = { name: `${prefix}browser`, maxAgeMs: BROWSER_KNOWN_MS };
  return {
    session: createCookie({ ...session, attributes: `Path=/; HttpOnly; SameSite=Lax${secure}` }),
    browser: createCookie({ ...browser, attributes: `Path=/; HttpOnly; SameSite=Strict${secure}` }),
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
      // Two of them means that somebody has planted one for another path or domain.
      return values.length === 1 ? values[0] : undefined;
    },
    write: (secret) => `${name}=${secret}; Max-Age=${maxAgeMs / 1000}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
