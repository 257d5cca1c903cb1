import { Failure } from "../../core/failure.ts";
import { ResponseError } from "./response-parser.ts";
import { PRIVATE_ADDRESS } from "./public-lookup.ts";

/** What broke a connection, in our words. `answered`: the status and headers were in. */
export function toTransportFailure(error: Error, answered: boolean): Failure {
  const code = "code" in error ? String(error.code) : "";
  if (code === "CONNECT_TIMEOUT") {
    return new Failure("upstream_timeout", "The upstream provider did not accept a connection in time.", {
      cause: error,
      transient: true,
    });
  }
  if (code === "NO_CONNECTION") {
    // Says nothing about the provider. It has waited already, so that another wait helps less than another model.
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
