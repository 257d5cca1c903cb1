/** Scheme of the `authorization` header by which a front tells its core the names of its caller's certificate. */
const SCHEME = "Certificate ";

/** Writes names as such a header. Alternative names have no comma (`net/tls-entrance.ts`). */
export function writeNames(names: readonly string[]): string {
  return SCHEME + names.join(", ");
}

/** The names in such a header; undefined for another one. */
export function readNames(authorization: string): string[] | undefined {
  return authorization.startsWith(SCHEME) ? authorization.slice(SCHEME.length).split(", ") : undefined;
}
