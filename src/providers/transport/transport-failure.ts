import { Failure } from "../../core/failure.ts";
import { PRIVATE_ADDRESS } from "../../net/host-lookup.ts";
import { ResponseError } from "./response-error.ts";
import { ProxyError } from "./tunnel.ts";

/** Size of a request body above which a proxy may close the connection instead of answering 413. */
const LARGE_BODY_BYTES = 256 * 1024;
/** Code of a connection on which the server did not choose HTTP/2. */
export const NO_HTTP2 = "NO_HTTP2";
/** Codes of a connection that could not be opened because file descriptors of the process or the machine are exhausted. */
const NO_DESCRIPTOR: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);
/** Codes of a connection that the other side closed. */
const CLOSED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "CLOSED"]);

/** Whether a connection could not be opened because file descriptors are exhausted. */
export function isOutOfDescriptors(error: Error): boolean {
  return "code" in error && NO_DESCRIPTOR.has(String(error.code));
}

/** Maps a connection error to a Failure. `answered`: status and headers had arrived; `sentBytes`: length of the request's body. */
export function toTransportFailure(
  error: Error,
  { answered, sentBytes }: { readonly answered: boolean; readonly sentBytes: number },
): Failure {
  const code = "code" in error ? String(error.code) : "";
  const said = { cause: error, ...(error.message !== "" && { providerError: error.message }) };
  if (code === "CONNECT_TIMEOUT") {
    return new Failure("upstream_timeout", "The upstream provider did not accept a connection in time.", {
      ...said,
      transient: true,
    });
  }
  if (code === "NO_CONNECTION") {
    // Not the provider's fault. The call has already waited, so a fallback is better than a retry.
    return new Failure("upstream_unavailable", "All connections to the upstream provider are in use.", {
      ...said,
      transient: false,
      requestBound: true,
    });
  }
  if (isOutOfDescriptors(error)) {
    // Not the provider's fault. A fallback may have a connection that several requests share.
    const message = "The gateway has no file descriptor left for a connection to the upstream provider.";
    return new Failure("upstream_unavailable", message, { ...said, transient: false, requestBound: true });
  }
  if (code === NO_HTTP2 || code === "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL") {
    return new Failure("upstream_unavailable", "The upstream provider does not offer HTTP/2.", {
      ...said,
      transient: false,
    });
  }
  if (code === "SILENCE") {
    return new Failure("upstream_timeout", "The upstream provider went silent in the middle of its answer.", {
      ...said,
    });
  }
  if (error instanceof ProxyError) {
    return new Failure("upstream_unavailable", "The proxy did not connect to the upstream provider.", {
      ...said,
      transient: error.status === undefined || error.status >= 500,
    });
  }
  if (error instanceof ResponseError || code === "ERR_HTTP2_ERROR") {
    return new Failure("upstream_protocol", "The upstream provider's answer is not valid HTTP.", { ...said });
  }
  if (answered) {
    const kind = code === "ECONNRESET" ? "upstream_unavailable" : "upstream_protocol";
    const message = "The upstream provider closed the connection before its answer was complete.";
    return new Failure(kind, message, { ...said });
  }
  const untrusted = code.startsWith("CERT_") || code.startsWith("ERR_TLS_") || /SIGNATURE|CERT|SELF_SIGNED/.test(code);
  if (untrusted) {
    return new Failure("upstream_unavailable", "The upstream provider's certificate is not valid.", {
      ...said,
      transient: false,
    });
  }
  const transient = code !== PRIVATE_ADDRESS;
  return new Failure("upstream_unavailable", "The upstream provider could not be reached.", {
    ...said,
    transient,
    // Otherwise one caller's large requests would open the circuit breaker for all.
    requestBound: sentBytes > LARGE_BODY_BYTES && CLOSED.has(code),
  });
}
