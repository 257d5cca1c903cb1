import { type File, type Image, ImageDetail, type NativeBlock, type Part } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { isBlank, requireText, toBlocks } from "../wire/block-turns.ts";
import { beginsWith, sniffImage, toPlainText } from "../wire/media.ts";
import { toNative } from "../wire/native.ts";
import type { ContentBlock, DocumentBlock, ImageBlock, TextBlock } from "./wire.ts";

/**
 * Converts the parts of a user message or a tool result to blocks. Drops blank text, which the provider refuses. Throws
 * `invalid_request` for audio and video, for uploads by ID, and for unsupported types of pictures and documents.
 */
export function toContentBlocks(context: TranslationContext, parts: readonly Part[]): ContentBlock[] {
  return toBlocks(context, parts, (part) => toContentBlock(context, part));
}

/** Converts the parts of a message that may only hold text. */
export function toTextBlocks(context: TranslationContext, parts: readonly Part[]): TextBlock[] {
  requireText(context.place, parts);
  return toContentBlocks(context, parts).filter((block) => block.type === "text");
}

function toContentBlock(context: TranslationContext, { kind }: Part): ContentBlock | undefined {
  const { place } = context;
  switch (kind.case) {
    case "text":
      return isBlank(kind.value) ? undefined : { type: "text", text: kind.value };
    case "image":
      return toImageBlock(context, kind.value);
    case "file":
      return toDocumentBlock(context, kind.value);
    case "audio":
      throw invalidField(place.field, "this model does not take audio");
    case "video":
      throw invalidField(place.field, "this model does not take video");
    case "native":
      return toNativeBlock(context, kind.value);
    default:
      return undefined;
  }
}

/** Parses a native block, which may be of a type that `Block` does not have. */
export function toNativeBlock(
  { log, marks, place }: TranslationContext,
  native: NativeBlock,
): ContentBlock | undefined {
  marks.noteNative(native);
  return toNative(native, "anthropic", { log, field: place.field }) as ContentBlock | undefined;
}

/** Converts a picture to a block. Throws `invalid_request` if the model or the provider does not take it. */
export function toImageBlock({ model, log, place }: TranslationContext, { source, detail }: Image): ImageBlock {
  const { field } = place;
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(field, "this model does not take images");
  log.omitWhen(detail > ImageDetail.AUTO, `${field}.image.detail`);
  if (source.case === "url") {
    if (!model.capabilities.imageUrls || !/^https:\/\//i.test(source.value)) {
      throw invalidField(field, "must be a data URL, or an https address where the model takes one");
    }
    return { type: "image", source: { type: "url", url: source.value } };
  }
  const mediaType = source.case === "data" ? sniffImage(source.value) : undefined;
  if (source.case !== "data" || mediaType === undefined) {
    throw invalidField(field, "must be a PNG, JPEG, GIF or WebP image");
  }
  return { type: "image", source: { type: "base64", media_type: mediaType, data: log.base64(source.value) } };
}

function toDocumentBlock(
  { model, log, place }: TranslationContext,
  { source, mediaType, name, citations }: File,
): DocumentBlock {
  const { field } = place;
  const more = {
    title: name === "" ? undefined : name,
    citations: citations ? ({ enabled: true } as const) : undefined,
  };
  if (source.case === "url" && model.capabilities.imageUrls)
    return { type: "document", source: { type: "url", url: source.value }, ...more };
  if (source.case !== "data")
    throw invalidField(field, "must hold the document itself, not the address or the ID of an upload");
  if (beginsWith(source.value, "%PDF-") || /^application\/pdf\b/i.test(mediaType)) {
    const data = log.base64(source.value);
    return { type: "document", source: { type: "base64", media_type: "application/pdf", data }, ...more };
  }
  const text = /^text\//i.test(mediaType) ? toPlainText(source.value) : undefined;
  if (text === undefined || isBlank(text)) throw invalidField(field, "must be a PDF document or plain text");
  return { type: "document", source: { type: "text", media_type: "text/plain", data: text }, ...more };
}
