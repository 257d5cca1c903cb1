import { isUtf8 } from "node:buffer";
import { create } from "@bufbuild/protobuf";
import type { z } from "zod";
import { type Image, ImageSchema } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { sniff } from "../data-url.ts";
import type { FormatInput, FormField, ReadCompletion } from "../format.ts";
import { readImage } from "../openai-media.ts";
import { shapeReader } from "../shape.ts";
import { type Picture, toRead } from "./request.ts";
import { type imageReference, imageEditForm, imageEditRequest, imageEditTexts, keysOf, MAX_EDITED } from "./schema.ts";

const NAME = "a request to edit pictures";
const readJsonShape = shapeReader(imageEditRequest, NAME);
const readTextsShape = shapeReader(imageEditTexts, NAME);
const JSON_KEYS = keysOf(imageEditRequest);
const FORM_KEYS = keysOf(imageEditForm);

/**
 * Converts an edit, as JSON or as a form, to one user message: the pictures, then the prompt. Throws `invalid_request` that
 * names each field of a wrong type.
 */
export function readImageEdit({ json, form }: Pick<FormatInput, "json" | "form">): ReadCompletion {
  return form === undefined ? readJson(json) : readForm(form);
}

function readJson(json: unknown): ReadCompletion {
  const given = readJsonShape(json);
  if (given.images.length === 0) throw invalidField("images", "must not be empty");
  const pictures = given.images.map((each, index) => toPicture(each, `images[${index}]`));
  const mask = given.mask == null ? undefined : toPicture(given.mask, "mask").image;
  return toRead(given, { event: "image_edit", knownKeys: JSON_KEYS, pictures, mask });
}

function toPicture({ image_url: url, file_id: file }: z.infer<typeof imageReference>, at: string): Picture {
  if (file != null)
    throw invalidField(
      `${at}.file_id`,
      "is not supported, because Parley keeps no files: send the picture as image_url, a data URL or an https address",
    );
  const name = `${at}.image_url`;
  if (url == null) throw invalidField(name, "is required");
  return { image: readImage(url, undefined, name), name };
}

function readForm(form: readonly FormField[]): ReadCompletion {
  const files: FormField[] = [];
  const masks: FormField[] = [];
  const texts = new Map<string, unknown>();
  for (const field of form) {
    if (field.name === "image" || field.name === "image[]") files.push(field);
    else if (field.name === "mask") masks.push(field);
    else addText(texts, field);
  }
  const given = readTextsShape(Object.fromEntries(texts));
  if (files.length === 0) throw invalidField("image", "is required: a picture as a file");
  if (files.length > MAX_EDITED) throw invalidField("image", `must be at most ${MAX_EDITED} pictures`);
  if (masks.length > 1) throw invalidField("mask", "must be given once");
  const pictures = files.map((file, index) => {
    const name = files.length === 1 ? "image" : `image[${index}]`;
    return { image: toImage(file, name), name };
  });
  const [mask] = masks.map((file) => toImage(file, "mask"));
  return toRead(given, { event: "image_edit", knownKeys: FORM_KEYS, pictures, mask });
}

/** Converts a file. Its type is detected by its bytes, because clients often declare a wrong type, or none. */
function toImage({ data, mediaType }: FormField, name: string): Image {
  const type = sniff(data) ?? mediaType;
  if (data.length === 0 || !type.startsWith("image/"))
    throw invalidField(name, "must be the file of a picture, such as PNG, JPEG, GIF or WebP");
  return create(ImageSchema, { source: { case: "data", value: data }, mediaType: type });
}

/** Adds a text, converted to the type of its JSON field, for the check of the shape. Only the names of unknown fields are kept. */
function addText(texts: Map<string, unknown>, { name, data }: FormField): void {
  const key = name === "parley[strict]" ? "parley" : name === "fallback_models[]" ? "fallback_models" : name;
  if (!FORM_KEYS.has(key)) return void texts.set(name, undefined);
  if (!isUtf8(data)) throw invalidField(name, "must be text in UTF-8");
  const text = data.toString("utf8");
  if (key === "fallback_models") {
    const models = texts.get(key) as string[] | undefined;
    return void texts.set(key, [...(models ?? []), text]);
  }
  if (texts.has(key)) throw invalidField(name, "must be given once");
  if (name === "parley[strict]") texts.set(key, { strict: toBoolean(text) });
  else if (key === "n" || key === "partial_images") texts.set(key, /^\d{1,9}$/.test(text) ? Number(text) : text);
  else texts.set(key, key === "stream" ? toBoolean(text) : text);
}

function toBoolean(text: string): boolean | string {
  return text === "true" || (text === "false" ? false : text);
}
