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
import { readBase64, sniff } from "../data-url.ts";
import {
  type Block,
  BLOCK_KEYS,
  CACHE_CONTROL_KEYS,
  CITATIONS_KEYS,
  isKnown,
  KINDS,
  type Kinds,
  type KnownBlock,
  type OtherBlock,
  SOURCE_KEYS,
} from "./block-schema.ts";
import type { Unrecognized } from "./places.ts";

/** The name of this dialect in native blocks. */
export const DIALECT = "anthropic";

type BlockOf<T extends KnownBlock["type"]> = Extract<KnownBlock, { type: T }>;
interface CacheControl {
  readonly type?: string | null | undefined;
  readonly ttl?: string | null | undefined;
}
type Marked = { readonly cache_control?: CacheControl | null | undefined };

/*
 * Parts are plain objects of the shape that `create` returns: a request may have thousands. The compiler reports a missing field.
 */

/** The place of a block in the request. */
interface BlockPlace {
  /** Its path, for errors. */
  readonly path: string;
  readonly kinds: Kinds;
}

/**
 * Converts a block of a message, or of the result of a call. A document that is given in blocks becomes several parts, unless it must
 * be cited.
 */
export function toParts(block: Block, place: BlockPlace, unrecognized: Unrecognized): Part[] {
  const { path, kinds } = place;
  const known = isKnown(block, kinds) ? block : undefined;
  if (known !== undefined) noteUnknown(known, path, unrecognized);
  noteCacheControl((block as Marked).cache_control, `${path}.`, unrecognized);
  if (known?.type === "document" && known.source.type === "content" && !isCited(known)) {
    const { content } = known.source;
    if (typeof content !== "string")
      return content.flatMap((each, index) =>
        toParts(each, { path: `${path}.source.content.${index}`, kinds: KINDS.document }, unrecognized),
      );
  }
  const kind = known === undefined ? toNative(block) : toKind(known, path, unrecognized);
  const part = toPart(kind, known?.type === "thinking" ? (known.signature ?? "") : "");
  const mark = toCacheMark((block as Marked).cache_control, path);
  if (mark !== undefined) part.cacheMark = mark;
  return [part];
}

function toKind(block: KnownBlock, path: string, unrecognized: Unrecognized): Part["kind"] {
  switch (block.type) {
    case "text":
      return { case: "text", value: block.text };
    case "image":
      return block.source.type === "file" ? toNative(block) : { case: "image", value: toImage(block.source, path) };
    case "document":
      return toDocument(block, path);
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

/** A native part with the unchanged block, without its cache mark. */
export function toNative(block: Block | OtherBlock): Extract<Part["kind"], { case: "native" }> {
  const { cache_control: _, ...rest } = block as OtherBlock;
  return {
    case: "native",
    value: { $typeName: "parley.v1.NativeBlock", dialect: DIALECT, json: JSON.stringify(rest) },
  };
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
    const data = bytesOf(source.data, path);
    image.source = { case: "data", value: data };
    image.mediaType = sniff(data) ?? source.media_type;
  }
  return image;
}

function bytesOf(text: string, path: string): Buffer {
  const data = readBase64(text);
  if (data === undefined) throw invalidField(`${path}.source.data`, "must be base64");
  return data;
}

const isCited = ({ citations }: BlockOf<"document">): boolean => citations?.enabled === true;

function toDocument(block: BlockOf<"document">, path: string): Part["kind"] {
  const { source, title } = block;
  const isText = source.type === "text" || (source.type === "content" && typeof source.content === "string");
  if (!isText && (source.type === "file" || source.type === "content")) return toNative(block);
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
      : (content ?? []).flatMap((each, index) =>
          toParts(each, { path: `${path}.content.${index}`, kinds: KINDS.result }, unrecognized),
        );
  return { $typeName: "parley.v1.ToolResult", toolCallId, parts, isError: isError === true };
}

const SECONDS = { s: 1, m: 60, h: 3600 } as const;

/** Notes the unknown keys of a block. */
function noteUnknown(block: KnownBlock, path: string, unrecognized: Unrecognized): void {
  unrecognized.addKeys(block, BLOCK_KEYS.get(block.type)!, `${path}.`);
  if (block.type !== "image" && block.type !== "document") return;
  unrecognized.addKeys(block.source, SOURCE_KEYS.get(block.source.type)!, `${path}.source.`);
  if (block.type === "document" && block.citations != null)
    unrecognized.addKeys(block.citations, CITATIONS_KEYS, `${path}.citations.`);
}

/** Notes the unknown keys of a cache mark. `path`: path of its owner, with a dot at the end; empty for the request. */
export function noteCacheControl(control: Marked["cache_control"], path: string, unrecognized: Unrecognized): void {
  if (control == null) return;
  unrecognized.addKeys(control, CACHE_CONTROL_KEYS, `${path}cache_control.`);
  if (control.type != null && control.type !== "ephemeral") unrecognized.add(`${path}cache_control.type`);
}

/** A cache mark. `path`: the block or tool that has it, for errors; empty for the request. */
export function toCacheMark(control: Marked["cache_control"], path: string): CacheMark | undefined {
  if (control == null) return undefined;
  const mark: CacheMark = { $typeName: "parley.v1.CacheMark" };
  if (control.ttl == null) return mark;
  const [, count, unit] = /^(\d{1,6})([smh])$/.exec(control.ttl) ?? [];
  if (count === undefined)
    throw invalidField(`${path === "" ? "" : `${path}.`}cache_control.ttl`, "must be a time such as 5m or 1h");
  mark.ttl = toDuration(Number(count) * SECONDS[unit as keyof typeof SECONDS] * 1000);
  return mark;
}
