/**
 * The `Authorization` header of a request, or what stands for it: some clients send the key in `x-api-key`.
 * Undefined when there is neither.
 */
export function authorizationOf(headers: {
  readonly authorization?: string | undefined;
  readonly "x-api-key"?: string | readonly string[] | undefined;
}): string | undefined {
  const { authorization, "x-api-key": key } = headers;
  return authorization ?? (typeof key === "string" && key !== "" ? `Bearer ${key}` : undefined);
}

/** The token of an `Authorization: Bearer …` header; undefined when there is none. The scheme's case does not matter. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const found = /^Bearer +(\S+) *$/i.exec(authorization);
  return found?.[1];
}
