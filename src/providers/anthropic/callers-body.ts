import type { CallersBody } from "../../core/provider.ts";
import { isSameList, keepsFields, setField } from "../wire/callers-body.ts";
import { array, isObject, type Json, object, string } from "../wire/json.ts";
import type { MessagesBody } from "./wire.ts";

/**
 * The caller's body of `POST /v1/messages`, with the fields that the gateway sets: the model, the token limit, the service tier,
 * whether the answer is a stream, and an end user without a personal address. Undefined for a body of another dialect, and when the
 * translation `body` differs in meaning: in its blocks, their order, its tools or its reasoning.
 */
export function toCallersBody(callers: CallersBody | undefined, body: MessagesBody): object | undefined {
  const given = callers?.dialect === "anthropic" ? callers.json : undefined;
  if (given === undefined || !saysTheSame(given, body)) return undefined;
  const own: Record<string, unknown> = { ...given, model: body.model, max_tokens: body.max_tokens };
  setField(own, "stream", body.stream);
  setField(own, "service_tier", body.service_tier);
  const { user_id: id } = object(given["metadata"]);
  if (body.metadata !== undefined && id !== body.metadata.user_id)
    own["metadata"] = { ...object(given["metadata"]), user_id: body.metadata.user_id };
  return own;
}

/**
 * Longest lifetime of the cache marks in a body. Searches the text, because a caller's body may have marks in places that the contract
 * does not know. A mark with an unknown lifetime counts as the dearest.
 */
export function longestMark(json: string): "none" | "minutes" | "hour" {
  if (!json.includes('"cache_control"')) return "none";
  return /"ttl"\s*:\s*"(?!5m")/.test(json) ? "hour" : "minutes";
}

const SAMPLING = ["temperature", "top_p", "top_k"] as const;

/** Whether the caller's body has the meaning of the translation. The dialect can write some things in several ways. */
function saysTheSame(given: Json, body: MessagesBody): boolean {
  return (
    isSameList(toBlocks(given["system"]), body.system ?? [], isSameBlock) &&
    isSameList(array(given["tools"]), body.tools ?? [], isSameTool) &&
    isSameReasoning(given, body) &&
    keepsFields(given, body, SAMPLING) &&
    isSameConversation(array(given["messages"]), body)
  );
}

/** Whether the conversations are equal. Neighbouring messages of one role count as one turn. */
function isSameConversation(given: readonly unknown[], { messages }: MessagesBody): boolean {
  const ofCaller = given.flatMap((message) => withRole(object(message)));
  const translated = messages.flatMap(({ role, content }) => content.map((block) => ({ role, block })));
  return isSameList(ofCaller, translated, (one, other) => {
    return object(one)["role"] === other.role && isSameBlock(object(one)["block"], other.block);
  });
}

function withRole({ role, content }: Json): { readonly role: unknown; readonly block: unknown }[] {
  return toBlocks(content).map((block) => ({ role, block }));
}

/** The blocks of a content. A text is short for one text block. */
function toBlocks(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return array(content);
}

/** Whether the blocks are equal. A native block may have any fields. */
function isSameBlock(given: unknown, translated: object): boolean {
  const [one, other] = [object(given), translated as Json];
  if (one["type"] !== other["type"]) return false;
  switch (other["type"]) {
    case "text":
      return one["text"] === other["text"];
    case "tool_use":
      return one["id"] === other["id"] && isObject(one["input"]);
    case "tool_result":
      return (
        one["tool_use_id"] === other["tool_use_id"] &&
        isSameList(toBlocks(one["content"]), toBlocks(other["content"]) as readonly object[], isSameBlock)
      );
    case "thinking":
      return one["signature"] === other["signature"];
    case "image":
    case "document":
      return isSameSource(object(one["source"]), object(other["source"]));
    default:
      return true;
  }
}

/** Whether the sources are equal. A declared media type that is not that of the bytes had to be changed. */
function isSameSource(given: Json, translated: Json): boolean {
  return given["type"] === translated["type"] && given["media_type"] === translated["media_type"];
}

function isSameTool(given: unknown, translated: object): boolean {
  return object(given)["name"] === (translated as Json)["name"];
}

/** Whether the reasoning is the same. Without fields in the caller's body, the model's default applies. */
function isSameReasoning(given: Json, { thinking, output_config: config }: MessagesBody): boolean {
  const asked = object(given["thinking"]);
  const effort = string(object(given["output_config"])["effort"]);
  const isSameEffort = effort === "" || effort === config?.effort;
  if (asked["type"] === undefined) return isSameEffort;
  if (asked["type"] !== thinking?.type) return false;
  return isSameEffort && (thinking.type !== "enabled" || asked["budget_tokens"] === thinking.budget_tokens);
}
