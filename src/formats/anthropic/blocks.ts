import {
  type CacheMark,
  type File,
  type Image,
  ImageDetail,
  type Part,
  type ToolResult,
} from "../../../gen/parley/v1/message_pb.js";
import { toDuration } from "../../core/attempt.ts";
import { toPart } from "../../core/chunks.ts";
import { invalidField } from "../../core/failure.ts";
import { readBase64 } from "../data-url.ts";
import { type Block, isKnown, type KnownBlock, type OtherBlock } from "./block-schema.ts";
import type { Unrecognized } from "./places.ts";

/** The name of this dialect in native blocks. */
export const DIALECT = "anthropic";

type BlockOf<T extends KnownBlock["type"]> = Extract<KnownBlock, { type: T }>;
type Marked = { readonly cache_control?: { readonly ttl?: string | null | undefined } | null | undefined };

/*
 * Parts are plain objects of the shape that `create` returns: a request may have thousands. The compiler reports a missing field.
 */

/**
 * Converts a block of a message, or of the result of a call. A document that is given in blocks becomes several parts, unless it must
 * be cited. `path`: the block's place in the request, for errors.
 */
export function toParts(block: Block, path: string, unrecognized: Unrecognized): Part[] {
  const blocks = contentOf(block);
  if (blocks !== undefined) return blocks.flatMap((each) => toParts(each, `${path}.source.content`, unrecognized));
  const part = toPart(toKind(block, path, unrecognized), block.type === "thinking" ? signatureOf(block) : "");
  const mark = toCacheMark((block as Marked).cache_control, path);
  if (mark !== undefined) part.cacheMark = mark;
  return [part];
}

/** The blocks of a document that need not be cited; undefined for any other block. */
function contentOf(block: Block): readonly Block[] | undefined {
  if (!isKnown(block) || block.type !== "document" || block.source.type !== "content") return undefined;
  const { content } = block.source;
  return typeof content === "string" || isCited(block) ? undefined : content;
}

function toKind(block: Block, path: string, unrecognized: Unrecognized): Part["kind"] {
  if (!isKnown(block)) return toNative(block);
  switch (block.type) {
    case "text":
      return { case: "text", value: block.text };
    case "image":
      return block.source.type === "file" ? toNative(block) : { case: "image", value: toImage(block.source, path) };
    case "document":
      return toDocument(block, path, unrecognized);
    case "tool_use": {
      const { id, name, input } = block;
      const value = JSON.stringify(input);
      return {
        case: "toolCall",
        value: { $typeName: "parley.v1.ToolCall", id, name, input: { case: "argumentsJson", value } },
      };
    }
    case "tool_result":
      return { case: "toolResult", value: toToolResult(block, path, unrecognized) };
    case "thinking":
      return { case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: block.thinking, redacted: "" } };
    case "redacted_thinking":
      return { case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: "", redacted: block.data } };
  }
}

/** The block as it is, without its cache mark. */
export function toNative(block: Block | OtherBlock): Extract<Part["kind"], { case: "native" }> {
  const { cache_control: _, ...rest } = block as OtherBlock;
  return {
    case: "native",
    value: { $typeName: "parley.v1.NativeBlock", dialect: DIALECT, json: JSON.stringify(rest) },
  };
}

function signatureOf(block: Block): string {
  return isKnown(block) && block.type === "thinking" ? (block.signature ?? "") : "";
}

function toImage(source: Exclude<BlockOf<"image">["source"], { type: "file" }>, path: string): Image {
  const image: Image = {
    $typeName: "parley.v1.Image",
    source: { case: undefined },
    mediaType: "",
    detail: ImageDetail.UNSPECIFIED,
  };
  if (source.type === "url") image.source = { case: "url", value: source.url };
  else {
    image.source = { case: "data", value: bytesOf(source.data, path) };
    image.mediaType = source.media_type;
  }
  return image;
}

function bytesOf(text: string, path: string): Buffer {
  const data = readBase64(text);
  if (data === undefined) throw invalidField(`${path}.source.data`, "must be base64");
  return data;
}

const isCited = ({ citations }: BlockOf<"document">): boolean => citations?.enabled === true;

function toDocument(block: BlockOf<"document">, path: string, unrecognized: Unrecognized): Part["kind"] {
  const { source, title } = block;
  const isText = source.type === "text" || (source.type === "content" && typeof source.content === "string");
  if (!isText && (source.type === "file" || source.type === "content")) return toNative(block);
  if (block["context"] != null) unrecognized.add(`${path}.context`);
  const file: File = {
    $typeName: "parley.v1.File",
    source: { case: undefined },
    name: title ?? "",
    mediaType: "",
    citations: isCited(block),
  };
  if (source.type === "url") file.source = { case: "url", value: source.url };
  else if (source.type === "base64") {
    file.source = { case: "data", value: bytesOf(source.data, path) };
    file.mediaType = source.media_type;
  } else {
    const text = source.type === "text" ? source.data : source.type === "content" ? source.content : "";
    file.source = { case: "data", value: Buffer.from(typeof text === "string" ? text : "") };
    file.mediaType = "text/plain";
  }
  return { case: "file", value: file };
}

function toToolResult(block: BlockOf<"tool_result">, path: string, unrecognized: Unrecognized): ToolResult {
  const { tool_use_id: toolCallId, content, is_error: isError } = block;
  const parts =
    typeof content === "string"
      ? content === ""
        ? []
        : [toPart({ case: "text", value: content })]
      : (content ?? []).flatMap((each, index) => toParts(each as Block, `${path}.content.${index}`, unrecognized));
  return { $typeName: "parley.v1.ToolResult", toolCallId, parts, isError: isError === true };
}

const SECONDS = { s: 1, m: 60, h: 3600 } as const;

/** A cache mark. `path`: the block or tool that has it, for errors. */
export function toCacheMark(control: Marked["cache_control"], path: string): CacheMark | undefined {
  if (control == null) return undefined;
  const mark: CacheMark = { $typeName: "parley.v1.CacheMark" };
  if (control.ttl == null) return mark;
  const [, count, unit] = /^(\d{1,6})([smh])$/.exec(control.ttl) ?? [];
  if (count === undefined) throw invalidField(`${path}.cache_control.ttl`, "must be a time such as 5m or 1h");
  mark.ttl = toDuration(Number(count) * SECONDS[unit as keyof typeof SECONDS] * 1000);
  return mark;
}
