import { SESSION_LIFETIME_MS } from "../access/sessions.ts";

/** The cookie that holds a session's ID. */
export interface SessionCookie {
  /** The ID in a `Cookie` header; undefined when there is none, or more than one. */
  read(header: string | undefined): string | undefined;
  /** A `Set-Cookie` header for a new session. */
  write(id: string): string;
  /** A `Set-Cookie` header that removes it. */
  clear(): string;
}

/**
 * With https it is `__Host-sid`, which browsers accept only for exactly this host and over TLS; on plain http, which is for
 * the loopback interface, `sid`. Scripts never see it, and other sites' pages do not send it along with their requests.
 */
export function createSessionCookie(isSecure: boolean): SessionCookie {
  const name = isSecure ? "__Host-sid" : "sid";
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    read(header = "") {
      const values = header.split(";").flatMap((pair) => {
        const at = pair.indexOf("=");
        return at >= 0 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
      });
      // Two of them means that somebody has planted one for another path or domain.
      return values.length === 1 ? values[0] : undefined;
    },
    write: (id) => `${name}=${id}; Max-Age=${SESSION_LIFETIME_MS / 1000}; ${attributes}`,
    clear: () => `${name}=; Max-Age=0; ${attributes}`,
  };
}
