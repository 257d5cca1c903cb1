import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Audio, Citation, Image, Part } from "../../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import type { HeldStrings } from "../held-strings.ts";
import { base64, base64Of } from "../media.ts";
import { type FurtherFields, readFurther, readTyped } from "../native.ts";

/** The name of this dialect in native parts and details. */
export const DIALECT = "openai";

/*
 * Parts of an answer in the OpenAI format, the same for whole answers and streams.
 */

const FINISH_REASONS: Readonly<Record<FinishReason, string>> = {
  [FinishReason.UNSPECIFIED]: "stop",
  [FinishReason.STOP]: "stop",
  [FinishReason.LENGTH]: "length",
  [FinishReason.TOOL_CALLS]: "tool_calls",
  [FinishReason.CONTENT_FILTER]: "content_filter",
  [FinishReason.OTHER]: "stop",
  [FinishReason.PAUSE]: "stop",
};

/** `finish_reason`: one of the format's four values. */
export function finishReason(reason: FinishReason): string {
  return FINISH_REASONS[reason] ?? "stop";
}

/** `usage`. Totals include cached and reasoning tokens, as clients expect. */
export function usage(of: Usage): object {
  return {
    prompt_tokens: of.inputTokens,
    completion_tokens: of.outputTokens,
    total_tokens: of.totalTokens,
    prompt_tokens_details: {
      cached_tokens: of.cachedInputTokens ?? 0,
      cache_write_tokens: of.cacheWriteInputTokens,
      audio_tokens: of.audioInputTokens,
      image_tokens: of.imageInputTokens,
    },
    completion_tokens_details: {
      reasoning_tokens: of.reasoningOutputTokens ?? 0,
      audio_tokens: of.audioOutputTokens,
      image_tokens: of.imageOutputTokens,
      accepted_prediction_tokens: of.acceptedPredictionTokens,
      rejected_prediction_tokens: of.rejectedPredictionTokens,
    },
  };
}

/** An `image_url` part with a data URL; its characters are stored in `held`. */
export function imagePart(image: Image, signature: string, held?: HeldStrings): object {
  return {
    type: "image_url",
    image_url: { url: imageUrl(image, held) },
    ...(signature !== "" && { extra_content: thoughtSignature(signature) }),
  };
}

function imageUrl({ source, mediaType }: Image, held: HeldStrings | undefined): string {
  if (source.case === "url") return source.value;
  return `data:${mediaType};base64,${base64Of(source, held)}`;
}

/** Provider state, in the field that Google's OpenAI-compatible endpoint uses. */
export function thoughtSignature(signature: string): object {
  return { google: { thought_signature: signature } };
}

/** Fields of a call that only this dialect has, with those of its function or custom tool. */
export interface FurtherOfCall {
  readonly ofCall: FurtherFields;
  readonly ofFunction: FurtherFields;
  readonly ofCustom: FurtherFields;
}

export function furtherOfCall(details: Part["providerDetailsJson"]): FurtherOfCall {
  return {
    ofCall: readFurther(details, { dialect: DIALECT }),
    ofFunction: readFurther(details, { dialect: DIALECT, place: "function" }),
    ofCustom: readFurther(details, { dialect: DIALECT, place: "custom" }),
  };
}

/** A reasoning part and its place in the answer. */
export interface PlacedReasoning {
  readonly text: string;
  readonly redacted: string;
  readonly signature: string;
  /** Number of UTF-16 units of text before it. */
  readonly textOffset: number;
  /** Number of tool calls before it. */
  readonly callOffset: number;
}

/** A reasoning block; without `at` when it is the first part. */
export function thinkingBlock(
  { text, signature, redacted, textOffset, callOffset }: PlacedReasoning,
  index: number,
): object {
  const at = textOffset > 0 || callOffset > 0 ? { at: { text: textOffset, tools: callOffset } } : {};
  if (redacted !== "") return { index, type: "redacted_thinking", data: redacted, ...at };
  return { index, type: "thinking", thinking: text, signature, ...at };
}

/**
 * The signature of an answer's texts. The OpenAI format has only one field for it: the last signature, or beside images the first one,
 * as Google's models sign them. Empty without any.
 */
export function textSignature(signatures: readonly string[], hasImage: boolean): string {
  return (hasImage ? signatures[0] : signatures.at(-1)) ?? "";
}

/**
 * Citations of pages, and native citations of this dialect. `before`: code points of the texts before their part; `length`: code points
 * of the part so far. The format has one text, and requires a range for every citation.
 */
export function annotations(
  citations: readonly Citation[],
  { before, length }: { readonly before: number; readonly length: number },
): object[] {
  return citations.flatMap(({ source, title, textRange }) => {
    const native = source.case === "native" ? readTyped(source.value, DIALECT) : undefined;
    if (native !== undefined) return [native];
    if (source.case !== "url") return [];
    const { start, end } = textRange ?? { start: 0, end: length };
    const place = { start_index: start + before, end_index: end + before };
    return [{ type: "url_citation", url_citation: { url: source.value, title, ...place } }];
  });
}

/** Speech. */
export function audio({ id, source, transcript, expireTime }: Audio): object {
  return {
    id,
    data: source.case === "data" ? base64(source.value) : "",
    transcript,
    ...(expireTime !== undefined && { expires_at: Number(expireTime.seconds) }),
  };
}
