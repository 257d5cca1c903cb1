import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import type { ContentPart, File, Image } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { TranslationContext } from "./cache-marks.ts";
import type { ContentBlock, DocumentBlock, ImageBlock, ImageType, TextBlock } from "./wire.ts";

/**
 * Converts the parts of a user or tool message to blocks. Drops blank text, which the provider refuses. Throws
 * `invalid_request` for audio, for uploads by ID, and for unsupported types of pictures and documents.
 */
export function toContentBlocks(
  context: TranslationContext,
  parts: readonly ContentPart[],
  field: string,
): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  parts.forEach((part, index) => {
    const partField = `${field}.content[${index}]`;
    const block = toContentBlock(context, part, partField);
    context.marks.put(block, part.cacheMark, partField);
    if (block !== undefined) blocks.push(block);
  });
  return blocks;
}

/** Converts the parts of a message that may only hold text. */
export function toTextBlocks(context: TranslationContext, parts: readonly ContentPart[], field: string): TextBlock[] {
  parts.forEach(({ content }, index) => {
    if (content.case !== "text") throw invalidField(`${field}.content[${index}]`, "must be text");
  });
  return toContentBlocks(context, parts, field).filter((block) => block.type === "text");
}

function toContentBlock(
  context: TranslationContext,
  { content }: ContentPart,
  field: string,
): ContentBlock | undefined {
  switch (content.case) {
    case "text":
      return isBlank(content.value) ? undefined : { type: "text", text: content.value };
    case "image":
      return toImageBlock(context, content.value, field);
    case "file":
      return toDocumentBlock(context, content.value, field);
    case "audio":
      throw invalidField(field, "this model does not take audio");
    case undefined:
      break;
  }
  return undefined;
}

/** Whether the provider refuses the text as empty. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Converts a picture to a block. Throws `invalid_request` if the model or the provider does not take it. */
export function toImageBlock({ model, log }: TranslationContext, { source, detail }: Image, field: string): ImageBlock {
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(field, "this model does not take images");
  log.omitWhen(detail !== "" && detail !== "auto", `${field}.image_url.detail`);
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

/** Detects the type from the bytes: the provider refuses a picture whose declared type differs from them. */
function sniffImage(bytes: Uint8Array): ImageType | undefined {
  if (beginsWith(bytes, "\x89PNG")) return "image/png";
  if (beginsWith(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (beginsWith(bytes, "GIF8")) return "image/gif";
  if (beginsWith(bytes, "RIFF") && beginsWith(bytes.subarray(8), "WEBP")) return "image/webp";
  return undefined;
}

function toDocumentBlock({ log }: TranslationContext, { source, mediaType, name }: File, field: string): DocumentBlock {
  if (source.case !== "data") throw invalidField(field, "must hold the document itself, not the ID of an upload");
  const title = name === "" ? undefined : name;
  if (beginsWith(source.value, "%PDF-") || /^application\/pdf\b/i.test(mediaType)) {
    return {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: log.base64(source.value) },
      title,
    };
  }
  const text = /^text\//i.test(mediaType) ? toText(source.value) : undefined;
  if (text === undefined || isBlank(text)) throw invalidField(field, "must be a PDF document or plain text");
  return { type: "document", source: { type: "text", media_type: "text/plain", data: text }, title };
}

function beginsWith(bytes: Uint8Array, magic: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(magic.length, bytes.length)).toString("latin1") === magic;
}

function toText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
