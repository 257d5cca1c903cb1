import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { brokenCall, noOutput } from "../wire/response-failure.ts";

/** Reasons for an answer that stopped at the token limit: valid, but truncated. */
const CUT_SHORT: ReadonlySet<string> = new Set([
  "MAX_TOKENS",
  // The limit of one request for a very long answer. Continuing takes a second request with the continuation token, and
  // one call is one request. The caller sees the truncation and can continue.
  "CONTINUATION",
]);

/** Reasons for content that the provider withheld. This is an answer, not a failure, so no fallback may follow. */
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
 * Maps a candidate's finish reason. Calls take precedence, because the provider also sends STOP for them and always
 * sends calls whole. An unknown reason is OTHER if there is content. Reasoning alone is an answer only with STOP.
 *
 * Throws `upstream_protocol` for an unusable answer: a malformed call, or no content.
 */
export function toFinishReason(native: string, { content, reasoning, calls }: Produced): FinishReason {
  if (BROKEN_CALL.has(native)) throw brokenCall();
  if (native === "MALFORMED_RESPONSE") throw noOutput();
  if (BLOCKED.has(native)) return FinishReason.CONTENT_FILTER;
  if (calls) return FinishReason.TOOL_CALLS;
  if (CUT_SHORT.has(native)) return FinishReason.LENGTH;
  if (content && native !== "STOP") return FinishReason.OTHER;
  if (content || (reasoning && native === "STOP")) return FinishReason.STOP;
  throw noOutput();
}
