import type { CallersBody } from "../../core/provider.ts";
import { isSameList, keepsFields, setField } from "../wire/callers-body.ts";
import { array, isObject, type Json, object, string } from "../wire/json.ts";
import type { MessagesBody } from "./wire.ts";

/**
 * The caller's body of `POST /v1/messages` with what the gateway decides: the model, the token limit, the service tier, whether
 * the answer is a stream, and an end user without a personal address. Undefined for the body of another dialect, and for one
 * that the translation `body` had to change: other blocks, another order, other tools or another reasoning.
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
 * Longest lifetime of the cache marks in a body, by its text: a caller's may have some in places that the contract does not know. One
 * with an unknown lifetime has the dearest price.
 */
export function longestMark(json: string): "none" | "minutes" | "hour" {
  if (!json.includes('"cache_control"')) return "none";
  return /"ttl"\s*:\s*"(?!5m")/.test(json) ? "hour" : "minutes";
}

const SAMPLING = ["temperature", "top_p", "top_k"] as const;

/** Whether the caller's body says what the translation says, in the dialect's other ways to say it. */
function saysTheSame(given: Json, body: MessagesBody): boolean {
  return (
    isSameList(toBlocks(given["system"]), body.system ?? [], isSameBlock) &&
    isSameList(array(given["tools"]), body.tools ?? [], isSameTool) &&
    isSameReasoning(given, body) &&
    keepsFields(given, body, SAMPLING) &&
    isSameConversation(array(given["messages"]), body)
  );
}

/** Neighbouring messages of one role are one turn. */
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

/** A text stands for a block with it. */
function toBlocks(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return array(content);
}

/** A native block has any fields. */
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

/** A declared type that is not that of the bytes has to be changed. */
function isSameSource(given: Json, translated: Json): boolean {
  return given["type"] === translated["type"] && given["media_type"] === translated["media_type"];
}

function isSameTool(given: unknown, translated: object): boolean {
  return object(given)["name"] === (translated as Json)["name"];
}

/** Where the caller says nothing, the model's own way is meant. */
function isSameReasoning(given: Json, { thinking, output_config: config }: MessagesBody): boolean {
  const asked = object(given["thinking"]);
  const effort = string(object(given["output_config"])["effort"]);
  const isSameEffort = effort === "" || effort === config?.effort;
  if (asked["type"] === undefined) return isSameEffort;
  if (asked["type"] !== thinking?.type) return false;
  return isSameEffort && (thinking.type !== "enabled" || asked["budget_tokens"] === thinking.budget_tokens);
}
