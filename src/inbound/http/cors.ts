import type { IncomingMessage } from "node:http";

type HeaderList = readonly (readonly [name: string, value: string])[];

const NONE: HeaderList = [];

/** What pages may read of an answer besides its body. */
const EXPOSED = [
  "x-request-id",
  "parley-requested-model",
  "parley-served-model",
  "parley-attempts",
  "parley-overhead-ms",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
].join(", ");

/** Headers for pages of other origins, for the origins that the configuration allows; `*` allows all. */
export function createCors(origins: readonly string[]): (request: IncomingMessage) => HeaderList {
  const allowed = new Set(origins);
  if (allowed.size === 0) return () => NONE;
  return ({ headers, method }) => {
    const { origin } = headers;
    if (origin === undefined) return NONE;
    if (!allowed.has(origin) && !allowed.has("*")) return [["vary", "origin"]];
    // No credentials: a key is sent by the page itself, never by the browser.
    const simple = [
      ["access-control-allow-origin", origin],
      ["access-control-expose-headers", EXPOSED],
      ["vary", "origin"],
    ] as const;
    if (method !== "OPTIONS") return simple;
    const asked = headers["access-control-request-headers"] ?? "authorization, content-type";
    return [
      ...simple,
      ["access-control-allow-methods", "GET, POST"],
      ["access-control-allow-headers", asked],
      ["access-control-max-age", "600"],
    ];
  };
}
