import { type File, type Image, ImageDetail, type NativeBlock, type Part } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import { type Json, string } from "../wire/json.ts";
import { refuseSpeech } from "../wire/media.ts";
import { toNative } from "../wire/native.ts";
import { toDataUrl, toInputAudio } from "../wire/openai-content.ts";
import { enumWord, type TranslationLog } from "../wire/translation.ts";
import type { InputContent } from "./wire.ts";

/** Name of the dialect in native parts and tools. */
export const DIALECT = "openai-responses";

/** Types of items that have a counterpart in the contract. */
const TRANSLATED: ReadonlySet<unknown> = new Set([
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "image_generation_call",
]);

/** Whether an item has no counterpart in the contract, such as a web search. Only such items keep the provider's IDs. */
export function isNativeItem({ type }: { readonly type?: unknown }): boolean {
  return !TRANSLATED.has(type ?? "message");
}

/**
 * Converts a native part of an answer to an item; undefined for a part of another dialect. Throws `invalid_request` for items with a
 * counterpart in the contract, which would evade its checks, and for references, which could read items of other callers at the
 * provider.
 */
export function toNativeItem(block: NativeBlock, { log, path }: Pick<PartContext, "log" | "path">): Json | undefined {
  const item = toNative(block, DIALECT, { log, field: path });
  if (item === undefined) return undefined;
  const { type } = item;
  if (type === "item_reference" || (type == null && item["role"] === undefined))
    throw invalidField(path, "cannot be a reference: Parley keeps no items; send the item itself");
  if (!isNativeItem(item)) throw invalidField(path, "must be a part of the contract, in place of an item of this type");
  return item;
}

/** Context of the translation of one message's content. */
export interface PartContext {
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  /** Path of the list of parts, or of one, such as `messages[2].parts`. */
  readonly path: string;
}

/**
 * Converts parts to content: a string for a single text or none, which more servers take than a list. Throws `invalid_request` for
 * unsupported parts.
 */
export function toContent(parts: readonly Part[], context: PartContext): string | readonly InputContent[] {
  const out = parts
    .map((part, index) => toInputContent(part, { ...context, path: `${context.path}[${index}]` }))
    .filter((part) => part !== undefined);
  const [only] = out;
  if (only === undefined) return "";
  return out.length === 1 && only.type === "input_text" ? only.text : out;
}

function toInputContent({ kind, cacheMark }: Part, context: PartContext): InputContent | undefined {
  const { log, path } = context;
  log.omitWhen(cacheMark !== undefined, `${path}.cache_mark`);
  switch (kind.case) {
    case "text":
      return { type: "input_text", text: kind.value };
    case "image":
      return toInputImage(kind.value, context);
    case "audio":
      if (!context.model.inputModalities.has(Modality.AUDIO))
        throw invalidField(path, "this model does not read audio");
      return { type: "input_audio", input_audio: toInputAudio(kind.value, { log, field: path }) };
    case "file":
      return toInputFile(kind.value, context);
    case "video":
      throw invalidField(path, "this model does not read video");
    case "native":
      return toNativePart(kind.value, context);
    case undefined:
      return undefined;
    default:
      throw invalidField(path, "must be text, an image, audio or a file");
  }
}

function toNativePart(block: NativeBlock, { model, log, path }: PartContext): InputContent | undefined {
  const part = toNative(block, DIALECT, { log, field: path });
  if (part !== undefined) refuseSpeech([string(part["type"]), ...Object.keys(part)], model, path);
  return part as InputContent | undefined;
}

function toInputImage({ source, mediaType, detail }: Image, { model, log, path }: PartContext): InputContent {
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(path, "this model does not read images");
  refuseSpeech([mediaType], model, path);
  return { type: "input_image", image_url: toImageUrl(), detail: enumWord(ImageDetail, detail) ?? "auto" };

  function toImageUrl(): string {
    if (source.case === "data") return toDataUrl(log, source.value, mediaType || "image/png");
    if (source.case === undefined) throw invalidField(path, "has neither image data nor an address");
    if (!source.value.startsWith("https://")) throw invalidField(path, "image addresses must be https");
    if (!model.capabilities.imageUrls)
      throw invalidField(path, "this model's provider does not read image addresses; send the image as a data: URL");
    log.readsAddress();
    return source.value;
  }
}

function toInputFile({ source, name, mediaType, citations }: File, { model, log, path }: PartContext): InputContent {
  refuseSpeech([mediaType], model, path);
  log.omitWhen(citations, `${path}.file.citations`);
  const filename = name || undefined;
  switch (source.case) {
    case "id":
      return { type: "input_file", file_id: source.value };
    case "data":
      // The service requires a file name beside the data.
      return {
        type: "input_file",
        filename: filename ?? (mediaType.startsWith("text/") ? "document.txt" : "document.pdf"),
        file_data: toDataUrl(log, source.value, mediaType || "application/pdf"),
      };
    case "url":
      if (!model.capabilities.imageUrls)
        throw invalidField(path, "this model's provider does not read addresses of files");
      log.readsAddress();
      return { type: "input_file", filename, file_url: source.value };
    case undefined:
      throw invalidField(path, "has neither file data nor a file ID");
  }
}
