import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { brokenCall, noOutput } from "../wire/response-failure.ts";

/** The token limit was reached: a valid answer, cut short. */
const CUT_SHORT: ReadonlySet<string> = new Set([
  "MAX_TOKENS",
  // One request's share of a very long answer is used up. Going on takes a second request with the token that came
  // along, and a call here is one request: the caller sees where the answer stops and can ask for more.
  "CONTINUATION",
]);

/** The provider withheld the rest. This is an answer, not a failure: no fallback may follow. */
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

/** Content that a candidate has produced by its end. */
export interface Produced {
  /** Anything but reasoning. */
  readonly content: boolean;
  readonly reasoning: boolean;
  readonly calls: boolean;
}

/**
 * Maps a candidate's finish reason. Calls take precedence, because the provider sends STOP for them too and always sends
 * calls whole. An unknown reason is a normal end if there is content. Reasoning alone is an answer only with STOP.
 *
 * Throws `upstream_protocol` for an unusable answer: a malformed call, or no content.
 */
export function toFinishReason(native: string, { content, reasoning, calls }: Produced): FinishReason {
  if (BROKEN_CALL.has(native)) throw brokenCall();
  if (native === "MALFORMED_RESPONSE") throw noOutput();
  if (BLOCKED.has(native)) return FinishReason.CONTENT_FILTER;
  if (calls) return FinishReason.TOOL_CALLS;
  if (CUT_SHORT.has(native)) return FinishReason.LENGTH;
  if (content || (reasoning && native === "STOP")) return FinishReason.STOP;
  throw noOutput();
}
