import { create } from "@bufbuild/protobuf";
import {
  type Audio,
  AudioSchema,
  type File,
  FileSchema,
  type Image,
  ImageDetail,
  ImageSchema,
} from "../../gen/parley/v1/message_pb.js";
import { invalidField } from "../core/failure.ts";
import { readBase64, readDataUrl } from "./data-url.ts";
import { DETAILS } from "./openai-words.ts";

/* Readers of pictures, recordings and documents in OpenAI's formats. `field`: the path in the request, for errors. */

/** Media types of audio formats whose names differ from the subtype. */
const AUDIO_TYPES: Readonly<Partial<Record<string, string>>> = { mp3: "audio/mpeg", pcm16: "audio/L16" };

/** Reads a picture: a data URL, or an https URL. */
export function readImage(url: string, detail: keyof typeof DETAILS | null | undefined, field: string): Image {
  const image = create(ImageSchema, { detail: detail == null ? ImageDetail.UNSPECIFIED : DETAILS[detail] });
  if (!/^data:/i.test(url)) {
    image.source = { case: "url", value: url };
    return image;
  }
  const content = readDataUrl(url);
  if (content === undefined) throw invalidField(field, "must be an https address or data:<media type>;base64,<data>");
  image.source = { case: "data", value: content.data };
  image.mediaType = content.mediaType;
  return image;
}

/** Reads a recording. */
export function readAudio(recording: { readonly data: string; readonly format: string }, field: string): Audio {
  const data = readBase64(recording.data);
  if (data === undefined) throw invalidField(`${field}.data`, "must be base64");
  const mediaType = AUDIO_TYPES[recording.format] ?? `audio/${recording.format}`;
  return create(AudioSchema, { source: { case: "data", value: data }, mediaType });
}

/** A document's fields. */
interface GivenFile {
  readonly filename?: string | null | undefined;
  readonly file_data?: string | null | undefined;
  readonly file_id?: string | null | undefined;
}

/** Reads a document, by its content or its ID. */
export function readFile(given: GivenFile, field: string): File {
  const file = create(FileSchema, { name: given.filename ?? "" });
  if (given.file_id != null) {
    file.source = { case: "id", value: given.file_id };
    return file;
  }
  const text = given.file_data ?? "";
  const content = /^data:/i.test(text) ? readDataUrl(text) : plainFile(text);
  if (content === undefined)
    throw invalidField(`${field}.file_data`, "must be base64 or data:<media type>;base64,<data>");
  file.source = { case: "data", value: content.data };
  file.mediaType = content.mediaType;
  return file;
}

function plainFile(text: string): { data: Buffer; mediaType: string } | undefined {
  const data = readBase64(text);
  return data && { data, mediaType: data.toString("latin1", 0, 5) === "%PDF-" ? "application/pdf" : "text/plain" };
}
