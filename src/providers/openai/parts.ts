import {
  type Audio,
  type File,
  type Image,
  ImageDetail,
  type NativeBlock,
  type Part,
} from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import { string } from "../wire/json.ts";
import { refuseSpeech } from "../wire/media.ts";
import { toNative } from "../wire/native.ts";
import { toDataUrl, toInputAudio } from "../wire/openai-content.ts";
import { enumWord, type TranslationLog } from "../wire/translation.ts";
import type { OpenAiContent, OpenAiPart } from "./wire.ts";

/** Context of the translation of one message's content. */
export interface PartContext {
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  /** Path of the list of parts, or of one, such as `messages[2].parts`. */
  readonly path: string;
}

/**
 * Converts parts into `content`: a string for a single text or none, else an array. For servers that accept no array of texts
 * the texts are joined by line feeds, as other servers do themselves. Throws `invalid_request` for unsupported parts.
 */
export function toContent(parts: readonly Part[], context: PartContext): OpenAiContent {
  const out = parts.map((part, index) => toPart(part, { ...context, path: `${context.path}[${index}]` }));
  return packParts(
    out.filter((part) => part !== undefined),
    context.model,
  );
}

/** Reduces parts to a string where possible. */
export function packParts(parts: OpenAiPart[], { capabilities }: UpstreamModel): OpenAiContent {
  const [only] = parts;
  if (only === undefined) return "";
  if (parts.length === 1) return only.type === "text" ? only.text : parts;
  if (capabilities.contentParts) return parts;
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return texts.length === parts.length ? texts.join("\n") : parts;
}

function toPart({ kind, cacheMark }: Part, context: PartContext): OpenAiPart | undefined {
  const { log, path } = context;
  log.omitWhen(cacheMark !== undefined, `${path}.cache_mark`);
  switch (kind.case) {
    case "text":
      return { type: "text", text: kind.value };
    case "image":
      return toImagePart(kind.value, context);
    case "audio":
      return toAudioPart(kind.value, context);
    case "file":
      return toFilePart(kind.value, context);
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

function toNativePart(block: NativeBlock, { model, log, path }: PartContext): OpenAiPart | undefined {
  const part = toNative(block, "openai", { log, field: path });
  if (part !== undefined) refuseSpeech([string(part["type"]), ...Object.keys(part)], model, path);
  return part as OpenAiPart | undefined;
}

function toImagePart({ source, mediaType, detail }: Image, { model, log, path }: PartContext): OpenAiPart {
  if (!model.inputModalities.has(Modality.IMAGE)) throw invalidField(path, "this model does not read images");
  refuseSpeech([mediaType], model, path);
  return {
    type: "image_url",
    image_url: { url: toImageUrl(source, mediaType), detail: enumWord(ImageDetail, detail) },
  };

  function toImageUrl({ case: kind, value }: Image["source"], type: string): string {
    if (kind === "data") return toDataUrl(log, value, type || "image/png");
    if (kind === undefined) throw invalidField(path, "has neither image data nor an address");
    if (!value.startsWith("https://")) throw invalidField(path, "image addresses must be https");
    if (!model.capabilities.imageUrls) {
      throw invalidField(path, "this model's provider does not read image addresses; send the image as a data: URL");
    }
    log.readsAddress();
    return value;
  }
}

function toAudioPart(audio: Audio, { model, log, path }: PartContext): OpenAiPart {
  if (!model.inputModalities.has(Modality.AUDIO)) throw invalidField(path, "this model does not read audio");
  return { type: "input_audio", input_audio: toInputAudio(audio, { log, field: path }) };
}

function toFilePart({ source, name, mediaType, citations }: File, { model, log, path }: PartContext): OpenAiPart {
  refuseSpeech([mediaType], model, path);
  log.omitWhen(citations, `${path}.file.citations`);
  const filename = name || undefined;
  if (source.case === "id") return { type: "file", file: { filename, file_id: source.value } };
  if (source.case === undefined) throw invalidField(path, "has neither file data nor a file ID");
  if (source.case === "url") throw invalidField(path, "this model's provider does not read addresses of files");
  return { type: "file", file: { filename, file_data: toDataUrl(log, source.value, mediaType || "application/pdf") } };
}
