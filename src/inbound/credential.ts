/** The token of an `Authorization: Bearer …` header; undefined when there is none. The scheme's case does not matter. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const found = /^Bearer +(\S+) *$/i.exec(authorization);
  return found?.[1];
}
