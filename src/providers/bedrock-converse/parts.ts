import {
  type Audio,
  type File,
  type Image,
  ImageDetail,
  type Part,
  type Video,
} from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { eachPart, isBlank, putMark, requireText, toBlocks } from "../wire/block-turns.ts";
import { beginsWith, sniffImage } from "../wire/media.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { toDocumentFormat } from "./documents.ts";
import type { AudioBlock, DocumentBlock, ImageBlock, ImageFormat, TextBlock, UserBlock, VideoBlock } from "./wire.ts";

/** Converts the parts of a user message. Drops blank text, which the provider refuses. */
export function toUserBlocks(context: TranslationContext, parts: readonly Part[]): UserBlock[] {
  return toBlocks(context, parts, (part) => toUserBlock(context, part));
}

/** Converts the parts of a message that may only hold text. */
export function toTextBlocks(context: TranslationContext, parts: readonly Part[]): TextBlock[] {
  requireText(context.place, parts);
  return toUserBlocks(context, parts).filter((block) => "text" in block);
}

/** Converts the parts of a tool's result, which may not contain recordings or cache marks. */
export function toResultBlocks(context: TranslationContext, parts: readonly Part[]): UserBlock[] {
  const { place } = context;
  const blocks: UserBlock[] = [];
  eachPart(place, parts, (part) => {
    if (part.kind.case === "audio")
      throw invalidField(place.field, "this model does not take audio in a tool's result");
    putMark(context, undefined, part);
    const block = toUserBlock(context, part);
    if (block !== undefined) blocks.push(block);
  });
  return blocks;
}

function toUserBlock(context: TranslationContext, { kind }: Part): UserBlock | undefined {
  switch (kind.case) {
    case "text":
      return isBlank(kind.value) ? undefined : { text: kind.value };
    case "image":
      return toImageBlock(context, kind.value);
    case "file":
      return toDocumentBlock(context, kind.value);
    case "video":
      return toVideoBlock(context, kind.value);
    case "audio":
      return toAudioBlock(context, kind.value);
    case "native":
      context.log.omit(context.place.field);
      return undefined;
    default:
      return undefined;
  }
}

/** Converts a picture to a block. Throws `invalid_request` if the model or the provider does not take it. */
export function toImageBlock({ model, log, place }: TranslationContext, { source, detail }: Image): ImageBlock {
  const { field } = place;
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(field, "this model does not take images");
  log.omitWhen(detail > ImageDetail.AUTO, `${field}.image.detail`);
  const type = source.case === "data" ? sniffImage(source.value) : undefined;
  if (source.case !== "data" || type === undefined)
    throw invalidField(field, "must be a PNG, JPEG, GIF or WebP image itself, not its address");
  return { image: { format: type.slice("image/".length) as ImageFormat, source: { bytes: log.base64(source.value) } } };
}

function toDocumentBlock(
  { log, documents, place }: TranslationContext,
  { source, mediaType, name, citations }: File,
): DocumentBlock {
  const { field } = place;
  if (source.case !== "data")
    throw invalidField(field, "must hold the document itself, not the address or the ID of an upload");
  const format = beginsWith(source.value, "%PDF-") ? "pdf" : toDocumentFormat(mediaType, name);
  if (format === undefined) throw invalidField(field, "must be PDF, Word, Excel, CSV, HTML, Markdown or plain text");
  const bytes = log.base64(source.value);
  return {
    document: {
      format,
      name: documents.take(name),
      source: { bytes },
      citations: citations ? { enabled: true } : undefined,
    },
  };
}

/** Formats of recordings by their media type. Source: `VideoFormat` and `AudioFormat` of the API reference. */
const VIDEO_FORMATS: Readonly<Record<string, string>> = {
  "video/mp4": "mp4",
  "video/quicktime": "mov",
  "video/x-matroska": "mkv",
  "video/webm": "webm",
  "video/x-flv": "flv",
  "video/mpeg": "mpeg",
  "video/x-ms-wmv": "wmv",
  "video/3gpp": "three_gp",
};

const AUDIO_FORMATS: Readonly<Record<string, string>> = {
  "audio/mpeg": "mp3",
  "audio/mp3": "mp3",
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/flac": "flac",
  "audio/ogg": "ogg",
  "audio/opus": "opus",
  "audio/aac": "aac",
  "audio/mp4": "m4a",
  "audio/webm": "webm",
};

function toVideoBlock({ model, log, place }: TranslationContext, video: Video): VideoBlock {
  const { field } = place;
  const { source, mediaType, startOffset, endOffset, framesPerSecond } = video;
  if (!model.inputModalities.has(Modality.VIDEO)) throw invalidField(field, "this model does not take video");
  const format = formatOf(VIDEO_FORMATS, mediaType);
  if (source.case !== "data" || format === undefined)
    throw invalidField(field, "must be an MP4, MOV, MKV, WebM, FLV, MPEG, WMV or 3GP video itself, not its address");
  log.omitWhen(startOffset !== undefined, `${field}.video.start_offset`);
  log.omitWhen(endOffset !== undefined, `${field}.video.end_offset`);
  log.omitWhen(framesPerSecond !== undefined, `${field}.video.frames_per_second`);
  return { video: { format, source: { bytes: log.base64(source.value) } } };
}

function toAudioBlock({ model, log, place }: TranslationContext, { source, mediaType }: Audio): AudioBlock {
  const { field } = place;
  if (!model.inputModalities.has(Modality.AUDIO)) throw invalidField(field, "this model does not take audio");
  const format = formatOf(AUDIO_FORMATS, mediaType);
  if (source.case !== "data" || format === undefined)
    throw invalidField(field, "must be an MP3, WAV, FLAC, Ogg, Opus, AAC, M4A or WebM recording itself");
  return { audio: { format, source: { bytes: log.base64(source.value) } } };
}

function formatOf(formats: Readonly<Record<string, string>>, mediaType: string): string | undefined {
  const type = mediaType.split(";", 1)[0]!.trim().toLowerCase();
  return Object.hasOwn(formats, type) ? formats[type] : undefined;
}
