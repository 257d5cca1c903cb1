import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Audio, AudioSchema, type Citation, type Image, ImageSchema } from "../../../gen/parley/v1/message_pb.js";
import type { WrittenText } from "../../core/chunks.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { toNativeCitation } from "../wire/native-words.ts";
import { toTextRange } from "../wire/openai-content.ts";

/** A piece of an answer. A signature or a citation belongs to the text. */
export type Content =
  | WrittenText
  | { readonly case: "signature"; readonly value: string }
  | { readonly case: "image"; readonly value: Image; readonly signature: string }
  | { readonly case: "audio"; readonly value: Audio }
  | { readonly case: "citation"; readonly value: Citation };

/**
 * Reads the content of a message or delta except tool calls: both have the same fields. Omits empty texts and unreadable
 * values.
 */
export function readContents(message: Json): Content[] {
  const out: Content[] = [];
  const reasoning = readReasoning(message);
  if (reasoning !== "") out.push({ case: "reasoning", value: reasoning });
  if (typeof message.content === "string") pushText(message.content, out);
  else for (const part of array(message.content)) readPart(object(part), out);
  const signature = readSignature(message);
  if (signature !== "") out.push({ case: "signature", value: signature });
  for (const annotation of array(message.annotations)) pushCitation(object(annotation), out);
  for (const image of array(message.images)) pushImage(object(image), out);
  const refusal = string(message.refusal);
  if (refusal !== "") out.push({ case: "refusal", value: refusal });
  const audio = readAudio(object(message.audio));
  if (audio !== undefined) out.push({ case: "audio", value: audio });
  return out;
}

/** State to be sent back with a call, text or image; empty without any. */
export function readSignature(owner: Json): string {
  return string(object(object(owner.extra_content).google).thought_signature);
}

/** Field names of reasoning; servers that use two of them repeat the same text. */
function readReasoning(message: Json): string {
  const named = string(message.reasoning_content) || string(message.reasoning);
  if (named !== "") return named;
  const thoughts = array(message.content)
    .map(object)
    .filter(({ type }) => type === "thinking");
  if (thoughts.length > 0) return thoughts.map(readThought).join("");
  const details = array(message.reasoning_details).map(object);
  return details.map(({ text, summary }) => string(text) || string(summary)).join("");
}

function readThought({ thinking }: Json): string {
  if (typeof thinking === "string") return thinking;
  return array(thinking)
    .map((piece) => string(object(piece).text))
    .join("");
}

function readPart(part: Json, out: Content[]): void {
  if (part.type === "text") pushText(string(part.text), out);
  else if (part.type === "image_url") pushImage(part, out);
  else if (part.type === "refusal" && string(part.refusal) !== "")
    out.push({ case: "refusal", value: string(part.refusal) });
}

function pushText(text: string, out: Content[]): void {
  if (text !== "") out.push({ case: "text", value: text });
}

function pushImage(part: Json, out: Content[]): void {
  const url = typeof part.image_url === "string" ? part.image_url : string(object(part.image_url).url);
  const source = readImageUrl(url);
  if (source === undefined) return;
  const { mediaType, ...place } = source;
  out.push({ case: "image", value: create(ImageSchema, { ...place, mediaType }), signature: readSignature(part) });
}

/** An image by data URL or https URL; undefined for anything else. */
function readImageUrl(url: string): Pick<Image, "source" | "mediaType"> | undefined {
  if (/^https?:\/\//i.test(url)) return { source: { case: "url", value: url }, mediaType: "" };
  const comma = url.indexOf(",");
  const head = /^data:([^;,]*)(?:;[^,]*)?;base64$/i.exec(url.slice(0, Math.max(comma, 0)));
  if (head === null) return undefined;
  const data = Buffer.from(url.slice(comma + 1), "base64");
  if (data.length === 0) return undefined;
  return { source: { case: "data", value: data }, mediaType: head[1]!.toLowerCase() || "image/png" };
}

function readAudio({ id, data, transcript, expires_at: expiresAt }: Json): Audio | undefined {
  const known = [id, data, transcript].some((value) => string(value) !== "");
  const seconds = count(expiresAt);
  if (!known && seconds === undefined) return undefined;
  return create(AudioSchema, {
    id: string(id),
    ...(string(data) !== "" && { source: { case: "data", value: Buffer.from(string(data), "base64") } }),
    transcript: string(transcript),
    ...(seconds !== undefined && { expireTime: timestampFromMs(seconds * 1000) }),
  });
}

/** Adds the citation of an annotation. Types other than `url_citation` become native. */
function pushCitation(annotation: Json, out: Content[]): void {
  const { type, url_citation: citation } = annotation;
  const { url, title, start_index: start, end_index: end } = object(citation);
  if (type !== "url_citation" || string(url) === "") {
    const native = toNativeCitation("openai", annotation);
    if (native !== undefined) out.push({ case: "citation", value: native });
    return;
  }
  const value: Citation = {
    $typeName: "parley.v1.Citation",
    source: { case: "url", value: string(url) },
    title: string(title),
    citedText: "",
  };
  const textRange = toTextRange(count(start), count(end));
  out.push({ case: "citation", value: textRange === undefined ? value : { ...value, textRange } });
}
