import type { Audio, File, Image, NativeBlock, Part as MessagePart, Video } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { knownSignature } from "./signature.ts";
import { toDurationText } from "../wire/duration.ts";
import { isObject, parsed } from "../wire/json.ts";
import { refuseSpeech } from "../wire/media.ts";
import { toNative } from "../wire/native.ts";
import type { InlineData, JsonObject, Part, VideoMetadata } from "./wire.ts";

const IMAGE_TYPES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]);

const AUDIO_TYPES: ReadonlySet<string> = new Set([
  "audio/wav",
  "audio/mpeg",
  "audio/mp3",
  "audio/aac",
  "audio/flac",
  "audio/ogg",
  "audio/aiff",
]);

/** The field path of a part in the request, and the model that receives it. */
export interface Place {
  /** Field path, such as `messages[1].parts[0]`. */
  readonly field: string;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
}

/**
 * Converts a part. Returns undefined for an empty text without a signature. Throws `invalid_request` for unsupported
 * content.
 */
export function toPart({ kind, signature: given }: MessagePart, place: Place): Part | undefined {
  const signature = knownSignature(given);
  const signed = signature === undefined ? {} : { thoughtSignature: signature };
  switch (kind.case) {
    case "text":
      return kind.value === "" && signature === undefined ? undefined : { text: kind.value, ...signed };
    case "refusal":
      return kind.value === "" ? undefined : { text: kind.value };
    case "image":
      return { inlineData: toPicture(kind.value, place), ...signed };
    case "audio":
      return toRecording(kind.value, place);
    case "video":
      return toVideo(kind.value, place);
    case "file":
      return toDocument(kind.value, place);
    case "toolCall": {
      const { id, name, input } = kind.value;
      if (input.case === "customInput") throw invalidField(place.field, "this model has no custom tools");
      return { functionCall: { id, name, args: toArgs(input.value ?? "") }, ...signed };
    }
    case "native":
      return toNativePart(kind.value, place);
    default:
      return undefined;
  }
}

function toNativePart(block: NativeBlock, place: Place): Part | undefined {
  const part = toNative(block, "gemini", place);
  if (part !== undefined) refuseSpeech(JSON.stringify(part).match(/"audio\//i) ?? [], place.model, place.field);
  return part as Part | undefined;
}

/** The provider requires an object, so other arguments are wrapped as text. */
function toArgs(text: string): JsonObject {
  if (text.trim() === "") return {};
  const value = parsed(text);
  return isObject(value) ? value : { arguments: text };
}

/**
 * Converts an image with inline bytes. URLs are rejected: this provider does not fetch them, and the gateway fetches
 * nothing.
 */
export function toPicture({ source, mediaType }: Image, { field, model, log }: Place): InlineData {
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(field, "this model takes no pictures");
  if (source.case !== "data") {
    throw invalidField(field, "this model takes pictures only as data, not by their address");
  }
  const type = sniffImageType(source.value) ?? mediaType.toLowerCase();
  if (!IMAGE_TYPES.has(type)) throw invalidField(field, "must be a PNG, JPEG, WebP, HEIC or HEIF picture");
  return { mimeType: type, data: log.base64(source.value) };
}

function toRecording({ source, mediaType }: Audio, { field, model, log }: Place): Part {
  if (!model.inputModalities.has(Modality.AUDIO)) throw invalidField(field, "this model takes no recordings");
  if (source.case === "url")
    return { fileData: { fileUri: source.value, ...(mediaType !== "" && { mimeType: mediaType }) } };
  if (source.case === undefined || source.value.length === 0)
    throw invalidField(field, "this model takes recordings only as data or by address");
  const type = mediaType.toLowerCase();
  if (!AUDIO_TYPES.has(type))
    throw invalidField(field, `must have one of the media types ${[...AUDIO_TYPES].join(", ")}`);
  return { inlineData: { mimeType: type, data: log.base64(source.value) } };
}

function toVideo({ source, mediaType, ...excerpt }: Video, { field, model, log }: Place): Part {
  if (!model.inputModalities.has(Modality.VIDEO)) throw invalidField(field, "this model takes no videos");
  if (source.case === undefined) throw invalidField(field, "must have its data or an address");
  const videoMetadata = toVideoMetadata(excerpt);
  const more = videoMetadata && { videoMetadata };
  if (source.case === "url") {
    return { fileData: { fileUri: source.value, ...(mediaType !== "" && { mimeType: mediaType }) }, ...more };
  }
  if (mediaType === "") throw invalidField(field, "must have a media type");
  return { inlineData: { mimeType: mediaType, data: log.base64(source.value) }, ...more };
}

/** Undefined for the whole video. */
function toVideoMetadata({
  startOffset,
  endOffset,
  framesPerSecond,
}: Pick<Video, "startOffset" | "endOffset" | "framesPerSecond">): VideoMetadata | undefined {
  if (startOffset === undefined && endOffset === undefined && framesPerSecond === undefined) return undefined;
  return {
    startOffset: startOffset && toDurationText(startOffset),
    endOffset: endOffset && toDurationText(endOffset),
    fps: framesPerSecond,
  };
}

function toDocument({ source, mediaType }: File, { field, model, log }: Place): Part {
  refuseSpeech([mediaType], model, field);
  if (source.case === "url")
    return { fileData: { fileUri: source.value, ...(mediaType !== "" && { mimeType: mediaType }) } };
  if (source.case !== "data") throw invalidField(field, "this model takes documents only as data or by address");
  const type = startsWith(source.value, "%PDF") ? "application/pdf" : mediaType;
  if (type === "") throw invalidField(field, "must have a media type");
  return { inlineData: { mimeType: type, data: log.base64(source.value) } };
}

/**
 * Detects the media type from the first bytes, because clients often declare a wrong one. Undefined for an unknown
 * signature.
 */
function sniffImageType(bytes: Uint8Array): string | undefined {
  if (startsWith(bytes, "\x89PNG")) return "image/png";
  if (startsWith(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWith(bytes, "GIF8")) return "image/gif";
  if (startsWith(bytes, "RIFF") && startsWith(bytes.subarray(8), "WEBP")) return "image/webp";
  if (!startsWith(bytes.subarray(4), "ftyp")) return undefined;
  const brand = bytes.subarray(8);
  if (startsWith(brand, "hei") || startsWith(brand, "hev")) return "image/heic";
  return startsWith(brand, "mif1") || startsWith(brand, "msf1") ? "image/heif" : undefined;
}

/** Whether the bytes begin with these characters, one byte each. */
function startsWith(bytes: Uint8Array, mark: string): boolean {
  if (bytes.length < mark.length) return false;
  for (let at = 0; at < mark.length; at++) if (bytes[at] !== mark.charCodeAt(at)) return false;
  return true;
}
