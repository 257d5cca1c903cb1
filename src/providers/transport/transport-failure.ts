import { Failure } from "../../core/failure.ts";
import { ResponseError } from "./response-parser.ts";
import { PRIVATE_ADDRESS } from "./public-lookup.ts";

/** Maps a connection error to a Failure. `answered`: status and headers had arrived. */
export function toTransportFailure(error: Error, answered: boolean): Failure {
  const code = "code" in error ? String(error.code) : "";
  if (code === "CONNECT_TIMEOUT") {
    return new Failure("upstream_timeout", "The upstream provider did not accept a connection in time.", {
      cause: error,
      transient: true,
    });
  }
  if (code === "NO_CONNECTION") {
    // Not the provider's fault. The call has already waited, so a fallback is better than a retry.
    return new Failure("upstream_unavailable", "All connections to the upstream provider are in use.", {
      cause: error,
      transient: false,
      requestBound: true,
    });
  }
  if (code === "SILENCE") {
    return new Failure("upstream_timeout", "The upstream provider went silent in the middle of its answer.", {
      cause: error,
    });
  }
  if (error instanceof ResponseError) {
    return new Failure("upstream_protocol", "The upstream provider's answer is not valid HTTP.", { cause: error });
  }
  if (answered) {
    const kind = code === "ECONNRESET" ? "upstream_unavailable" : "upstream_protocol";
    const message = "The upstream provider closed the connection before its answer was complete.";
    return new Failure(kind, message, { cause: error });
  }
  const untrusted = code.startsWith("CERT_") || code.startsWith("ERR_TLS_") || /SIGNATURE|CERT|SELF_SIGNED/.test(code);
  if (untrusted) {
    return new Failure("upstream_unavailable", "The upstream provider's certificate is not valid.", {
      cause: error,
      transient: false,
    });
  }
  const transient = code !== PRIVATE_ADDRESS;
  return new Failure("upstream_unavailable", "The upstream provider could not be reached.", {
    cause: error,
    transient,
  });
}
