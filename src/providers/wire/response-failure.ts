import { Failure } from "../../core/failure.ts";

/*
 * The failures of answers that nobody can use, the same for every dialect. The transport adds the status that the
 * answer came with.
 */

/** A stream that stopped before its end. */
export function truncated(): Failure {
  return new Failure("upstream_protocol", "The upstream provider closed the stream before it was complete.");
}

/** An answer, or an event, in no form that we know. */
export function unreadable(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer could not be read.");
}

/** An answer, or an event, with more in it than is parsed. */
export function tooComplex(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer is nested too deep or has too many values.");
}

/** A whole answer without a reason for its end. */
export function incomplete(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer is not complete.");
}

/** A call that cannot be made. Which calls a model tries depends on the request. */
export function brokenCall(): Failure {
  return new Failure("upstream_protocol", "The upstream model produced an invalid tool call.", { requestBound: true });
}

/** An answer that ended as if it were one, and has nothing in it. That too may be the request's doing. */
export function noOutput(): Failure {
  return new Failure("upstream_protocol", "The upstream model returned no usable output.", { requestBound: true });
}
