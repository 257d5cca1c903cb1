import { Failure } from "../../core/failure.ts";

/*
 * Failures of unusable 2xx responses, shared by all dialects. `wire/response.ts` adds the upstream status.
 */

/** A stream that ended before its finish reason. */
export function truncated(): Failure {
  return new Failure("upstream_protocol", "The upstream provider closed the stream before it was complete.");
}

/** A response or event of unknown form. */
export function unreadable(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer could not be read.");
}

/** A response or event beyond MAX_RESPONSE_JSON. */
export function tooComplex(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer is nested too deep or has too many values.");
}

/** A whole response without a finish reason. */
export function incomplete(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer is not complete.");
}

/** An unusable tool call. Bound to the request, because the request decides which calls a model makes. */
export function brokenCall(): Failure {
  return new Failure("upstream_protocol", "The upstream model produced an invalid tool call.", { requestBound: true });
}

/** A finished answer without content. Bound to the request, which may be the cause. */
export function noOutput(): Failure {
  return new Failure("upstream_protocol", "The upstream model returned no usable output.", { requestBound: true });
}
