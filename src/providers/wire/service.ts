import type { Upstream } from "../transport/http.ts";
import type { Redact } from "./redaction.ts";

/** The connection of a dialect to one configured service. */
export interface Service {
  /** Appends the dialect's paths to its base URL. Adds the credential, unless `headers` has it. */
  readonly upstream: Upstream;
  /** Headers of every request, names in lower case. They replace the dialect's own headers, with documented exceptions. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Removes the service's credentials from its texts. Default: it has none. */
  readonly redact?: Redact | undefined;
  /** Whether the service bills prompts that it refuses for their content or their length. Default: no. */
  readonly billsRefusals?: boolean | undefined;
}

/** Headers of every request. Compression would delay a stream until a block is full. */
export const JSON_HEADERS = { "content-type": "application/json", "accept-encoding": "identity" } as const;
