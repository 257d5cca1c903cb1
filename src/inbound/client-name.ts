import { hideKeys } from "../encoding/hide-keys.ts";

const MAX_CHARS = 120;

/**
 * Name of the caller's program, of the header `User-Agent`: shortened, without control characters and API keys. Undefined
 * without the header.
 */
export function clientName(userAgent: string | undefined): string | undefined {
  if (userAgent === undefined) return undefined;
  const name = hideKeys(userAgent)
    .slice(0, MAX_CHARS)
    .replaceAll(/\p{Cc}/gu, "")
    .trim();
  return name === "" ? undefined : name;
}
