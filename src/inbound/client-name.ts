import { hideKeys } from "../encoding/hide-keys.ts";

const MAX_CHARS = 120;

/** What a caller says its program is, of the header `User-Agent`: shortened, without control characters and API keys. Undefined without one. */
export function clientName(userAgent: string | undefined): string | undefined {
  if (userAgent === undefined) return undefined;
  const name = hideKeys(userAgent)
    .slice(0, MAX_CHARS)
    .replaceAll(/\p{Cc}/gu, "")
    .trim();
  return name === "" ? undefined : name;
}
