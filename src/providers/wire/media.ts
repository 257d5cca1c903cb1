import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";

/** The picture types that are detected by their bytes. */
export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** Detects the type from the bytes: providers refuse a picture whose declared type differs from them. */
export function sniffImage(bytes: Uint8Array): ImageType | undefined {
  if (beginsWith(bytes, "\x89PNG")) return "image/png";
  if (beginsWith(bytes, "\xff\xd8\xff")) return "image/jpeg";
  if (beginsWith(bytes, "GIF8")) return "image/gif";
  if (beginsWith(bytes, "RIFF") && beginsWith(bytes.subarray(8), "WEBP")) return "image/webp";
  return undefined;
}

/** Whether the bytes begin with these characters of Latin-1. */
export function beginsWith(bytes: Uint8Array, magic: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(magic.length, bytes.length)).toString("latin1") === magic;
}

/** The bytes as text; undefined when they are not UTF-8. */
export function toPlainText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const SPEECH = /audio/i;

/**
 * Throws `invalid_request` for a part with speech and a model that reads none: a price without speech is a fraction of what the provider
 * bills. `kinds`: the media type of the part, or its type and names of fields.
 */
export function refuseSpeech(
  kinds: readonly string[],
  model: Pick<UpstreamModel, "inputModalities">,
  field: string,
): void {
  if (model.inputModalities.has(Modality.AUDIO) || !kinds.some((kind) => SPEECH.test(kind))) return;
  throw invalidField(field, "this model does not read audio");
}
