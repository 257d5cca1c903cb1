const MAX_CHARS = 120;

/** What a caller says its program is, of the header `User-Agent`: shortened, without control characters. Undefined without one. */
export function clientName(userAgent: string | undefined): string | undefined {
  const name = userAgent
    ?.slice(0, MAX_CHARS)
    .replaceAll(/\p{Cc}/gu, "")
    .trim();
  return name === "" ? undefined : name;
}
