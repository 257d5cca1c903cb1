import type { CallersBody } from "../../core/provider.ts";
import { isSameList, keepsFields, setField } from "../wire/callers-body.ts";
import { array, type Json, object, string } from "../wire/json.ts";
import { DIALECT, isNativeItem } from "./parts.ts";
import { readState } from "./state.ts";
import type { ResponsesBody } from "./wire.ts";

const REASONING = "reasoning.encrypted_content";

/**
 * The caller's body of `POST /responses`, with the fields that the gateway sets: the model, no storage and encrypted reasoning, the
 * limits of tokens and pictures, the service tier, and whether the answer is a stream. The provider's own reasoning items are restored,
 * and item IDs that the gateway made are removed. Undefined for a body of another dialect, and when the translation `body` differs in
 * meaning: in its items, their order, its tools or its reasoning.
 */
export function toCallersBody(callers: CallersBody | undefined, body: ResponsesBody): object | undefined {
  const given = callers?.dialect === DIALECT ? callers.json : undefined;
  const input = given === undefined ? undefined : toOwnInput(given["input"]);
  if (given === undefined || input === undefined || !saysTheSame({ ...given, input }, body)) return undefined;
  const own: Record<string, unknown> = { ...given, model: body.model, input, store: body.store };
  const asked = array(given["include"]).filter((each) => each !== REASONING);
  const include = [...new Set([...asked, ...(body.include ?? [])])];
  setField(own, "include", include.length > 0 ? include : undefined);
  setField(own, "stream", body.stream);
  setField(own, "service_tier", body.service_tier);
  if (body.max_output_tokens !== undefined) own["max_output_tokens"] = body.max_output_tokens;
  if (body.max_tool_calls !== undefined) own["max_tool_calls"] = body.max_tool_calls;
  if (given["reasoning"] == null) setField(own, "reasoning", body.reasoning);
  // The provider accepts `stream_options` only for streams.
  if (body.stream === undefined) delete own["stream_options"];
  return own;
}

/**
 * The caller's items with the provider's state in place of the gateway's reasoning items, each of which holds the signature of a part.
 * Undefined for state of another provider, and for a reasoning item that is not at its place.
 */
function toOwnInput(given: unknown): string | readonly Json[] | undefined {
  if (typeof given === "string") return given;
  const own: Json[] = [];
  for (const item of array(given).map(object)) {
    if (item["type"] !== "reasoning") own.push(toOwnItem(item));
    else if (string(item["encrypted_content"]) !== "") {
      const last = own.at(-1) ?? {};
      const state = readState(string(item["encrypted_content"]));
      if (state === undefined) return undefined;
      if ("reasoning" in state) own.push({ type: "reasoning", ...state.reasoning });
      else if ("phase" in state && last["role"] === "assistant") own.splice(-1, 1, { ...last, phase: state.phase });
      else if ("image" in state && last["type"] === "image_generation_call")
        own.splice(-1, 1, { ...last, id: state.image });
      else return undefined;
    }
  }
  const items = array(given) as readonly Json[];
  return isSameList(items, own, Object.is) ? items : own;
}

/**
 * An item without fields that the service refuses: those that official clients add when they parse, and facts of a picture. A native item
 * is returned unchanged.
 */
function toOwnItem(given: Json): Json {
  if (isNativeItem(given)) return given;
  const { type, status, result } = given;
  if (type === "image_generation_call") return { id: given["id"], type, status, result };
  const content = toOwnContent(given["content"]);
  const isSame = content === given["content"];
  if (isSame && !Object.hasOwn(given, "id") && !Object.hasOwn(given, "parsed_arguments")) return given;
  const { id: _id, parsed_arguments: _parsed, ...item } = given;
  return isSame ? item : { ...item, content };
}

/** The content without `parsed` fields. Returns the same value when there are none. */
function toOwnContent(content: unknown): unknown {
  if (!Array.isArray(content) || !content.some((part) => Object.hasOwn(object(part), "parsed"))) return content;
  return content.map((part) => {
    const { parsed: _, ...rest } = object(part);
    return rest;
  });
}

/** Whether the caller's body has the meaning of the translation. The dialect can write some things in several ways. */
function saysTheSame(given: Json, body: ResponsesBody): boolean {
  const reasoning = object(given["reasoning"]);
  const isSameReasoning =
    given["reasoning"] == null ||
    (body.reasoning !== undefined && (reasoning["effort"] ?? body.reasoning.effort) === body.reasoning.effort);
  return (
    isSameReasoning &&
    keepsFields(given, body, ["temperature", "top_p"]) &&
    formOf(object(object(given["text"])["format"])) === formOf(object(body.text?.format)) &&
    isSameList(array(given["tools"]), body.tools ?? [], isSameTool) &&
    isSameList(toFacts(given), toFacts(body as unknown as Json), isSameFact)
  );
}

const formOf = ({ type }: Json): unknown => type ?? "text";

function isSameTool(given: unknown, translated: object): boolean {
  const [one, other] = [object(given), translated as Json];
  return one["type"] === other["type"] && one["name"] === other["name"];
}

/** A comparable fact of a conversation, such as a text or a call. */
type Fact = readonly unknown[];

function isSameFact(given: unknown, translated: Fact): boolean {
  return isSameList(given as Fact, translated, Object.is);
}

/** The facts of a conversation. Instructions count as the first system message, and neighbouring messages of the model as one. */
function toFacts({ instructions, input }: Json): Fact[] {
  const items = typeof input === "string" ? [{ role: "user", content: input }] : array(input).map(object);
  return [...toContentFacts("system", instructions), ...items.flatMap(toItemFacts)];
}

function toItemFacts(item: Json): Fact[] {
  const { type, role, content, call_id: callId, name, output } = item;
  switch (type ?? "message") {
    case "message":
      return toContentFacts(role === "developer" ? "system" : string(role), content);
    case "function_call":
      return [[type, callId, name, item["arguments"]]];
    case "custom_tool_call":
      return [[type, callId, name, item["input"]]];
    case "function_call_output":
    case "custom_tool_call_output":
      // An output without a call is context from the client.
      return callId == null ? toContentFacts("user", output) : [[type, callId], ...toContentFacts("tool", output)];
    case "reasoning":
      return [[type, item["encrypted_content"]]];
    case "image_generation_call":
      return [[type, item["id"], item["result"]]];
    default:
      return [[type]];
  }
}

function toContentFacts(role: string, content: unknown): Fact[] {
  if (typeof content === "string") return content === "" ? [] : [[role, content]];
  return array(content)
    .map((given): Fact => {
      const part = object(given);
      const { text, refusal, image_url: image, file_data: data, file_id: id, file_url: url } = part;
      return [role, text ?? refusal ?? image ?? data ?? id ?? url ?? object(part["input_audio"])["data"]];
    })
    .filter(([, value]) => value !== "");
}
