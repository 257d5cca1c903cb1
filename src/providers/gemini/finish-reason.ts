import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { brokenCall, noOutput } from "../wire/response-failure.ts";

/** The limit was reached, which is a whole answer as far as it goes. */
const CUT_SHORT: ReadonlySet<string> = new Set([
  "MAX_TOKENS",
  // One request's share of a very long answer is used up. Going on takes a second request with the token that came
  // along, and a call here is one request: the caller sees where the answer stops and can ask for more.
  "CONTINUATION",
]);

/** The provider withheld the rest. That is an answer, not a failure: another provider must not be asked instead. */
const BLOCKED: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

const BROKEN_CALL: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
]);

/** What a candidate has said by its end. */
export interface Said {
  /** Anything but reasoning. */
  readonly content: boolean;
  readonly reasoning: boolean;
  readonly calls: boolean;
}

/**
 * Why a candidate ended. Calls win over the provider's word, for it says STOP there too, and calls always come whole.
 * Words we do not know are a normal end when there is something to show for it. Reasoning alone is an answer only when
 * the model says that it stopped by itself.
 *
 * Throws `upstream_protocol` for an answer that nobody can use: a broken call, or nothing at all.
 */
export function toFinishReason(native: string, { content, reasoning, calls }: Said): FinishReason {
  if (BROKEN_CALL.has(native)) throw brokenCall();
  if (native === "MALFORMED_RESPONSE") throw noOutput();
  if (BLOCKED.has(native)) return FinishReason.CONTENT_FILTER;
  if (calls) return FinishReason.TOOL_CALLS;
  if (CUT_SHORT.has(native)) return FinishReason.LENGTH;
  if (content || (reasoning && native === "STOP")) return FinishReason.STOP;
  throw noOutput();
}
