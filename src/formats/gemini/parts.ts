import { create } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  AudioSchema,
  FileSchema,
  ImageSchema,
  type Part,
  type ToolResult,
  VideoSchema,
} from "../../../gen/parley/v1/message_pb.js";
import { toDuration } from "../../core/attempt.ts";
import { toPart } from "../../core/chunks.ts";
import { invalidField } from "../../core/failure.ts";
import { readBase64 } from "../data-url.ts";
import type { FileData, FunctionResponse, GeminiPart, InlineData } from "./content-schema.ts";

/** Keys that a part of any kind may have. */
const OF_ANY_PART: ReadonlySet<string> = new Set([
  "thought",
  "thoughtSignature",
  "videoMetadata",
  "mediaResolution",
  "partMetadata",
]);

/**
 * Converts a part other than a call, a response or a thought. Undefined for a part without content. `path`: its path in the request, for
 * errors.
 */
export function toContentPart(given: GeminiPart, path: string, signature: string): Part | undefined {
  if (given.text != null)
    return given.text === "" && signature === "" ? undefined : toPart({ case: "text", value: given.text }, signature);
  if (given.inlineData != null)
    return toPart(withMetadata(ofInlineData(given.inlineData, `${path}.inlineData`), given, path), signature);
  if (given.fileData != null) return toPart(withMetadata(ofFileData(given.fileData), given, path), signature);
  if (isOfOtherKind(given)) {
    const json = JSON.stringify(given);
    return toPart({ case: "native", value: { $typeName: "parley.v1.NativeBlock", dialect: "gemini", json } });
  }
  return signature === "" ? undefined : toPart({ case: "text", value: "" }, signature);
}

function isOfOtherKind(given: GeminiPart): boolean {
  for (const key in given) if (given[key] != null && !OF_ANY_PART.has(key)) return true;
  return false;
}

function ofInlineData({ mimeType, data }: InlineData, path: string): Part["kind"] {
  const value = readBase64(data);
  if (value === undefined) throw invalidField(`${path}.data`, "must be base64");
  const source = { case: "data", value } as const;
  switch (familyOf(mimeType)) {
    case "image":
      return { case: "image", value: create(ImageSchema, { source, mediaType: mimeType }) };
    case "audio":
      return { case: "audio", value: create(AudioSchema, { source, mediaType: mimeType }) };
    case "video":
      return { case: "video", value: create(VideoSchema, { source, mediaType: mimeType }) };
    default:
      return { case: "file", value: create(FileSchema, { source, mediaType: mimeType }) };
  }
}

const YOUTUBE = /^https:\/\/(?:(?:www|m)\.)?(?:youtube\.com|youtu\.be)\//i;

function ofFileData({ fileUri, mimeType }: FileData): Part["kind"] {
  const source = { case: "url", value: fileUri } as const;
  const mediaType = mimeType ?? "";
  switch (familyOf(mediaType)) {
    case "image":
      return { case: "image", value: create(ImageSchema, { source, mediaType }) };
    case "audio":
      return { case: "audio", value: create(AudioSchema, { source, mediaType }) };
    case "video":
      return { case: "video", value: create(VideoSchema, { source, mediaType }) };
    default:
      return mediaType === "" && YOUTUBE.test(fileUri)
        ? { case: "video", value: create(VideoSchema, { source }) }
        : { case: "file", value: create(FileSchema, { source, mediaType }) };
  }
}

function familyOf(mimeType: string): string {
  return mimeType.slice(0, Math.max(mimeType.indexOf("/"), 0)).toLowerCase();
}

function withMetadata(kind: Part["kind"], { videoMetadata }: GeminiPart, path: string): Part["kind"] {
  if (kind.case !== "video" || videoMetadata == null) return kind;
  const { startOffset, endOffset, fps } = videoMetadata;
  const at = `${path}.videoMetadata`;
  if (startOffset != null) kind.value.startOffset = readDuration(startOffset, `${at}.startOffset`);
  if (endOffset != null) kind.value.endOffset = readDuration(endOffset, `${at}.endOffset`);
  if (fps != null) kind.value.framesPerSecond = fps;
  return kind;
}

function readDuration(text: string, path: string): Duration {
  const [, seconds] = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(text) ?? [];
  if (seconds === undefined) throw invalidField(path, "must be a time such as 12.5s");
  return toDuration(Number(seconds) * 1000);
}

/** Converts the result of a call: the response as JSON text, and the files beside it. */
export function toToolResult({ response, parts }: FunctionResponse, toolCallId: string, path: string): ToolResult {
  const text = toPart({ case: "text", value: JSON.stringify(response ?? {}) });
  const files = (parts ?? []).map(({ inlineData, fileData }, index) => {
    const at = `${path}.parts[${index}]`;
    if (inlineData != null) return toPart(ofInlineData(inlineData, `${at}.inlineData`));
    if (fileData != null) return toPart(ofFileData(fileData));
    throw invalidField(at, "must have inlineData or fileData");
  });
  return { $typeName: "parley.v1.ToolResult", toolCallId, parts: [text, ...files], isError: false };
}
