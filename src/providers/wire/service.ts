import type { Upstream } from "../transport/http.ts";
import type { Redact } from "./redaction.ts";

/** How a dialect reaches one configured service. */
export interface Service {
  /** Its base URL is what the dialect's paths are appended to. Adds the credential, unless `headers` has it. */
  readonly upstream: Upstream;
  /** Sent with every request. They replace the dialect's own headers, with exceptions that the dialect names; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes the service's credentials out of its texts. Default: it has none. */
  readonly redact?: Redact;
}
