import { type Audio, type ContentPart, type File, type Image } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { knownSignature } from "./signature.ts";
import type { InlineData, Part } from "./wire.ts";

const IMAGE_TYPES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]);

/** By the `format` of a recording. */
const AUDIO_TYPES: ReadonlyMap<string, string> = new Map([
  ["wav", "audio/wav"],
  ["mp3", "audio/mpeg"],
  ["aac", "audio/aac"],
  ["flac", "audio/flac"],
  ["ogg", "audio/ogg"],
  ["aiff", "audio/aiff"],
]);

/** Where a part stands in the request, and which model is to take it. */
export interface Place {
  /** Such as `messages[1].content[0]`. */
  readonly field: string;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
}

/** A content part in the provider's form; nothing for empty text. Throws `invalid_request` for what it cannot carry. */
export function toPart({ content }: ContentPart, place: Place): Part | undefined {
  switch (content.case) {
    case "text":
      return content.value === "" ? undefined : { text: content.value };
    case "image": {
      const signature = knownSignature(content.value.signature);
      const inlineData = toPicture(content.value, place);
      return { inlineData, ...(signature !== undefined && { thoughtSignature: signature }) };
    }
    case "audio":
      return { inlineData: toRecording(content.value, place) };
    case "file":
      return { inlineData: toDocument(content.value, place) };
    case undefined:
      break;
  }
  return undefined;
}

/** A picture's bytes. Addresses are refused: this provider does not read them, and the gateway fetches nothing. */
export function toPicture({ source, mediaType }: Image, { field, model, log }: Place): InlineData {
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(field, "this model takes no pictures");
  if (source.case !== "data") {
    throw invalidField(field, "this model takes pictures only as data, not by their address");
  }
  const type = sniffImageType(source.value) ?? mediaType.toLowerCase();
  if (!IMAGE_TYPES.has(type)) throw invalidField(field, "must be a PNG, JPEG, WebP, HEIC or HEIF picture");
  return { mimeType: type, data: log.base64(source.value) };
}

function toRecording({ data, format }: Audio, { field, model, log }: Place): InlineData {
  if (!model.inputModalities.has(Modality.AUDIO)) throw invalidField(field, "this model takes no recordings");
  if (data.length === 0) throw invalidField(field, "this model takes recordings only as data");
  const type = AUDIO_TYPES.get(format);
  if (type === undefined)
    throw invalidField(field, `must have one of the formats ${[...AUDIO_TYPES.keys()].join(", ")}`);
  return { mimeType: type, data: log.base64(data) };
}

function toDocument({ source, mediaType }: File, { field, log }: Place): InlineData {
  if (source.case !== "data") throw invalidField(field, "this model takes documents only as data");
  const type = startsWith(source.value, "%PDF") ? "application/pdf" : mediaType;
  if (type === "") throw invalidField(field, "must have a media type");
  return { mimeType: type, data: log.base64(source.value) };
}

/** What the bytes say they are; clients often declare another type. Undefined when they say nothing we know. */
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
