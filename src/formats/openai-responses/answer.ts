import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Citation, Image, NativeBlock, Part, TokenLogprob } from "../../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { Failure } from "../../core/failure.ts";
import type { HeldStrings } from "../held-strings.ts";
import { tokenLogprob } from "../logprobs.ts";
import { base64Of } from "../media.ts";
import { type FurtherFields, type JsonObject, readFurther, readNative, readTyped } from "../native.ts";
import { DIALECT, OWN_ID } from "./native.ts";
import type { ToolName } from "./tools.ts";

/*
 * Items of an answer, the same for whole answers and streams. A stream changes them while they are written.
 */

export type Status = "in_progress" | "completed" | "incomplete";

export interface OutputText {
  readonly type: "output_text";
  text: string;
  readonly annotations: object[];
  readonly logprobs: object[];
}
export interface Refusal {
  readonly type: "refusal";
  refusal: string;
}

export interface MessageItem {
  readonly id: string;
  readonly type: "message";
  status: Status;
  readonly role: "assistant";
  readonly content: (OutputText | Refusal)[];
}
export interface ReasoningItem {
  readonly id: string;
  readonly type: "reasoning";
  status: Status;
  readonly summary: { readonly type: "summary_text"; text: string }[];
  encrypted_content?: string;
}
export interface FunctionCallItem {
  readonly id: string;
  readonly type: "function_call";
  status: Status;
  readonly call_id: string;
  readonly name: string;
  readonly namespace: string | undefined;
  arguments: string;
}
/** A call of a custom tool. It has no status. */
export interface CustomCallItem {
  readonly id: string;
  readonly type: "custom_tool_call";
  readonly call_id: string;
  readonly name: string;
  readonly namespace: string | undefined;
  input: string;
}
export interface ImageItem {
  readonly id: string;
  readonly type: "image_generation_call";
  status: Status;
  result: string | null;
  output_format?: string;
}

/** Steps of the provider's own tools, which the vendor's streams send as events between the start and the end of an item. */
const STEPS: Readonly<Partial<Record<string, readonly string[]>>> = {
  image_generation_call: ["in_progress", "generating", "completed"],
  web_search_call: ["in_progress", "searching", "completed"],
  file_search_call: ["in_progress", "searching", "completed"],
  code_interpreter_call: ["in_progress", "interpreting", "completed"],
  mcp_call: ["in_progress", "completed"],
  mcp_list_tools: ["in_progress", "completed"],
};

/** An item of the dialect that the contract does not have, in the provider's JSON. */
export class NativeItem {
  readonly type = "native";
  readonly id: string;
  readonly #item: JsonObject;

  /** `id`: replaces the provider's ID. */
  constructor(item: JsonObject, id: string) {
    this.#item = item["id"] === id ? item : { ...item, id };
    this.id = id;
  }

  toJSON(): JsonObject {
    return this.#item;
  }

  /** The item with the status of an unfinished one. */
  begun(): JsonObject {
    return "status" in this.#item ? { ...this.#item, status: "in_progress" } : this.#item;
  }

  /** The types of the events between its start and its end; empty for a failed tool. */
  steps(): readonly string[] {
    const { type, status, error } = this.#item;
    const isFailed = (status !== undefined && status !== "completed") || (error !== undefined && error !== null);
    return isFailed ? [] : stepsOf(String(type));
  }
}

/** The types of the events between the beginning and the end of an item. */
export function stepsOf(type: string): readonly string[] {
  const steps = Object.hasOwn(STEPS, type) ? STEPS[type] : undefined;
  return steps?.map((step) => `response.${type}.${step}`) ?? [];
}

export type OutputItem = MessageItem | ReasoningItem | FunctionCallItem | CustomCallItem | ImageItem | NativeItem;

const PREFIXES = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  custom_tool_call: "ctc",
  image_generation_call: "ig",
  native: OWN_ID,
} as const satisfies Record<OutputItem["type"], string>;

/** Characters of a completion's ID that are used in those of its items. */
const suffixOf = (completionId: string): string => completionId.replace(/^chatcmpl-/, "");

export function responseId(completionId: string): string {
  return `resp_${suffixOf(completionId)}`;
}

/** ID of an item, unique in the answer. `index`: its position. */
function itemId(type: OutputItem["type"], completionId: string, index: number): string {
  return `${PREFIXES[type]}_${suffixOf(completionId)}${index}`;
}

/** Makes the items of one answer, numbers them, and keeps them in order. */
export class OutputItems {
  readonly list: OutputItem[] = [];
  readonly #completionId: string;
  readonly #nativeIds = new Set<string>();

  constructor(completionId: string) {
    this.#completionId = completionId;
  }

  message(): MessageItem {
    return this.#add({ ...this.#head("message"), role: "assistant", content: [] });
  }

  reasoning(): ReasoningItem {
    return this.#add({ ...this.#head("reasoning"), summary: [] });
  }

  functionCall(callId: string, { name, namespace }: ToolName): FunctionCallItem {
    return this.#add({ ...this.#head("function_call"), call_id: callId, name, namespace, arguments: "" });
  }

  customCall(callId: string, { name, namespace }: ToolName): CustomCallItem {
    const { id, type } = this.#head("custom_tool_call");
    return this.#add({ id, type, call_id: callId, name, namespace, input: "" });
  }

  image(): ImageItem {
    return this.#add({ ...this.#head("image_generation_call"), result: null });
  }

  /** Undefined for a block of another dialect. An item without an ID gets one, because clients tell items apart by their IDs. */
  native(block: Pick<NativeBlock, "dialect" | "json">): NativeItem | undefined {
    const item = readNative(block, DIALECT);
    if (typeof item?.["type"] !== "string") return undefined;
    const { id } = item;
    const isOwn = typeof id === "string" && id !== "" && !this.#nativeIds.has(id);
    const native = new NativeItem(item, isOwn ? id : itemId("native", this.#completionId, this.list.length));
    this.#nativeIds.add(native.id);
    return this.#add(native);
  }

  #head<T extends Exclude<OutputItem, NativeItem>["type"]>(type: T): { id: string; type: T; status: Status } {
    return { id: itemId(type, this.#completionId, this.list.length), type, status: "in_progress" };
  }

  #add<T extends OutputItem>(item: T): T {
    this.list.push(item);
    return item;
  }
}

/** Adds fields that only this dialect has to an item, and to the last text of a message. They do not replace the item's own fields. */
export function addFurther(item: OutputItem, details: Part["providerDetailsJson"]): void {
  if (item.type !== "message") return addFields(item, readFurther(details, { dialect: DIALECT }));
  addFields(item, readFurther(details, { dialect: DIALECT, place: "message" }));
  const last = item.content.at(-1);
  if (last !== undefined) addFields(last, readFurther(details, { dialect: DIALECT, place: "content" }));
}

function addFields(to: object, fields: FurtherFields): void {
  for (const [name, value] of Object.entries(fields))
    if (!(name in to)) Object.defineProperty(to, name, { value, enumerable: true });
}

/** Ends an item. */
export function setStatus(item: OutputItem, status: Status): void {
  if ("status" in item) item.status = status;
}

export const newText = (): OutputText => ({ type: "output_text", text: "", annotations: [], logprobs: [] });

/** Fills in a picture; its characters are stored in `held`. */
export function fillImage(item: ImageItem, { source, mediaType }: Image, held?: HeldStrings): void {
  item.result = source.case === "url" ? source.value : base64Of(source, held);
  item.output_format = mediaType.slice(mediaType.indexOf("/") + 1);
}

/** A citation of a page, or a native citation of this dialect. `length`: code points of the text so far. */
export function annotation({ source, title, textRange }: Citation, length: number): object | undefined {
  if (source.case === "native") return readTyped(source.value, DIALECT);
  if (source.case !== "url") return undefined;
  const { start, end } = textRange ?? { start: 0, end: length };
  return { type: "url_citation", url: source.value, title, start_index: start, end_index: end };
}

/** A token's log probability. Clients require the bytes. */
export function logprob(token: TokenLogprob): object {
  return { ...tokenLogprob(token), bytes: [...(token.bytes ?? Buffer.from(token.token))] };
}

/** Limit of a stream, whose last events repeat it, and of a whole answer's log probabilities: 25,000 tokens with 20 alternatives each. */
export const MAX_CHARS = 16 * 1024 * 1024;
/** Limit of a stream's log probabilities that are kept for its last events: each takes some 200 bytes, and is repeated four times. */
const MAX_REPEATED_CHARS = 512 * 1024;
/** Characters that a log probability counts as, without its token. */
const LOGPROB_CHARS = 16;

/** Characters that log probabilities count as: a token is written as text and as bytes. */
export function countLogprobs(tokens: readonly TokenLogprob[]): number {
  let chars = 0;
  for (const token of tokens)
    for (const { token: text } of [token, ...token.top]) chars += LOGPROB_CHARS + text.length * 5;
  return chars;
}

/** Counts the log probabilities that a stream keeps for its last events. */
export class RepeatedLogprobs {
  #chars = 0;

  /** Counts more of them. Returns whether they may be kept: no further ones are once the limit was exceeded. */
  take(tokens: readonly TokenLogprob[]): boolean {
    this.#chars += countLogprobs(tokens);
    return this.#chars <= MAX_REPEATED_CHARS;
  }
}

/** The failure of an answer beyond MAX_CHARS. */
export function tooLong(): Failure {
  return new Failure("upstream_protocol", "The upstream provider's answer is longer than this format writes.");
}

/** Why an answer is incomplete; undefined for a complete one. An answer with a refusal text is complete. */
export function incompleteReason(reason: FinishReason, hasRefusal: boolean): string | undefined {
  if (reason === FinishReason.LENGTH) return "max_output_tokens";
  return reason === FinishReason.CONTENT_FILTER && !hasRefusal ? "content_filter" : undefined;
}

/** `usage`. Totals include cached and reasoning tokens. */
export function usage(of: Usage): object {
  return {
    input_tokens: of.inputTokens,
    input_tokens_details: {
      cached_tokens: of.cachedInputTokens ?? 0,
      cache_write_tokens: of.cacheWriteInputTokens ?? 0,
    },
    output_tokens: of.outputTokens,
    output_tokens_details: { reasoning_tokens: of.reasoningOutputTokens ?? 0 },
    total_tokens: of.totalTokens,
  };
}
