import { createHash } from "node:crypto";
import { type Message, Role, type ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { type PartContext, packParts, toContent } from "./parts.ts";
import type {
  OpenAiAssistantMessage,
  OpenAiContent,
  OpenAiExtraContent,
  OpenAiMessage,
  OpenAiPart,
  OpenAiToolCall,
} from "./wire.ts";

/** Limit of characters of tool call IDs at OpenAI. */
const MAX_CALL_ID_CHARS = 40;

/**
 * Converts the conversation. System messages move to the front for servers that need it (see `gatherSystemMessages`). Images
 * in tool results follow the results as a user message, because tool messages hold text only. Throws `invalid_request` for
 * unsupported content.
 */
export function toMessages(messages: readonly Message[], model: UpstreamModel, log: TranslationLog): OpenAiMessage[] {
  const out: OpenAiMessage[] = [];
  let pictures: OpenAiPart[] = [];
  const showPictures = (): void => {
    if (pictures.length > 0) out.push({ role: "user", content: pictures });
    pictures = [];
  };
  messages.forEach((message, index) => {
    const context: PartContext = { model, log, path: `messages[${index}]` };
    log.omitWhen(message.cacheMark !== undefined, `${context.path}.cache_control`);
    if (message.role === Role.TOOL) {
      log.omitWhen(Boolean(message.name), `${context.path}.name`);
      const { text, images } = splitToolResult(toContent(message.content, context));
      const id = toCallId(message.toolCallId ?? "");
      out.push({ role: "tool", tool_call_id: id, content: packParts(text, model) });
      if (images.length > 0)
        pictures.push({ type: "text", text: `Images in the result of tool call ${id}:` }, ...images);
      return;
    }
    showPictures();
    out.push(toTurn(message, context));
  });
  showPictures();
  return model.capabilities.midConversationSystem ? out : gatherSystemMessages(out, model);
}

function toTurn(message: Message, context: PartContext): OpenAiMessage {
  const name = message.name || undefined;
  switch (message.role) {
    case Role.SYSTEM:
      return { role: "system", content: toContent(message.content, context), name };
    case Role.USER:
      return { role: "user", content: toContent(message.content, context), name };
    case Role.ASSISTANT:
      return toAssistantTurn(message, context);
    default:
      throw invalidField(`${context.path}.role`, "must be system, user, assistant or tool");
  }
}

/**
 * Converts an earlier answer. Images are omitted and reported, because assistant messages cannot hold them. Speech is
 * referenced by ID for models with speech output, else sent as its transcript. Reasoning is sent to models that check it;
 * other servers refuse the field. Throws `invalid_request` for documents, and for speech with neither ID nor transcript.
 */
function toAssistantTurn(message: Message, context: PartContext): OpenAiAssistantMessage {
  const { capabilities, outputModalities } = context.model;
  const { preservedReasoning } = capabilities;
  noteUnsayable(message, context);
  const speech = message.content.flatMap(({ content }) => (content.case === "audio" ? [content.value] : []));
  const audioId = outputModalities.has(Modality.AUDIO) ? speech.find(({ id }) => id !== "")?.id : undefined;
  const said = audioId === undefined ? speech.map(({ transcript }) => transcript) : [];
  const content = toAssistantText(message, said, context);
  const calls = message.toolCalls.map((call) => toToolCall(call, { signed: preservedReasoning }));
  const reasoning = message.reasoning.map((block) => block.text).join("");
  const silent = content === "" && (calls.length > 0 || audioId !== undefined || Boolean(message.refusal));
  return {
    role: "assistant",
    content: silent ? null : content,
    name: message.name || undefined,
    refusal: message.refusal || undefined,
    audio: audioId === undefined ? undefined : { id: audioId },
    tool_calls: calls.length > 0 ? calls : undefined,
    reasoning_content: preservedReasoning && reasoning !== "" ? reasoning : undefined,
    extra_content: preservedReasoning ? toExtraContent(message.signature) : undefined,
  };
}

function noteUnsayable({ content }: Message, { model, log, path }: PartContext): void {
  const speaks = model.outputModalities.has(Modality.AUDIO);
  content.forEach(({ content: part }, index) => {
    const field = `${path}.content[${index}]`;
    log.omitWhen(part.case === "image", field);
    if (part.case === "file") throw invalidField(field, "an assistant message cannot hold a file");
    if (part.case === "audio" && part.value.transcript === "" && !(speaks && part.value.id !== "")) {
      throw invalidField(field, "this model can neither be referred to this speech nor be told what was said");
    }
  });
}

function toAssistantText(message: Message, said: readonly string[], { model, log, path }: PartContext): OpenAiContent {
  const texts = message.content.map(({ content, cacheMark }, index) => {
    log.omitWhen(cacheMark !== undefined, `${path}.content[${index}].cache_control`);
    return content.case === "text" ? content.value : "";
  });
  const parts = [...texts, ...said].filter((text) => text !== "");
  return packParts(
    parts.map((text): OpenAiPart => ({ type: "text", text })),
    model,
  );
}

function toToolCall(call: ToolCall, { signed }: { readonly signed: boolean }): OpenAiToolCall {
  const id = toCallId(call.id);
  const extra_content = signed ? toExtraContent(call.signature) : undefined;
  return call.custom
    ? { id, type: "custom", custom: { name: call.name, input: call.arguments }, extra_content }
    : { id, type: "function", function: { name: call.name, arguments: call.arguments || "{}" }, extra_content };
}

function toExtraContent(signature: string | undefined): OpenAiExtraContent | undefined {
  return signature ? { google: { thought_signature: signature } } : undefined;
}

/**
 * Shortens a long tool call ID and appends a hash, the same for the call and its result. Keeps all characters: some servers
 * interpret their own IDs.
 */
function toCallId(id: string): string {
  if (id.length <= MAX_CALL_ID_CHARS) return id;
  const hash = createHash("sha256").update(id).digest("hex").slice(0, 8);
  return `${id.slice(0, MAX_CALL_ID_CHARS - hash.length - 1)}_${hash}`;
}

function splitToolResult(content: OpenAiContent): { text: OpenAiPart[]; images: OpenAiPart[] } {
  const parts: OpenAiPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const images = parts.filter((part) => part.type !== "text");
  return { text: parts.filter((part) => part.type === "text"), images };
}

/**
 * Joins all system messages into one at the front, for servers whose prompt templates require it. For models that check the
 * conversation, later system messages stay in place as user messages, so that the front does not change.
 */
function gatherSystemMessages(messages: readonly OpenAiMessage[], model: UpstreamModel): OpenAiMessage[] {
  if (!messages.slice(1).some(({ role }) => role === "system")) return [...messages];
  const start = messages.findIndex(({ role }) => role !== "system");
  const leading = start === -1 ? messages : messages.slice(0, start);
  const rest = start === -1 ? [] : messages.slice(start);
  const hoist = !model.capabilities.preservedReasoning;
  const system = [...leading, ...(hoist ? rest.filter(({ role }) => role === "system") : [])];
  const others = hoist
    ? rest.filter(({ role }) => role !== "system")
    : rest.map((message): OpenAiMessage => (message.role === "system" ? { ...message, role: "user" } : message));
  const parts = system.flatMap(({ content }): OpenAiPart[] =>
    typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []),
  );
  return parts.length === 0 ? others : [{ role: "system", content: packParts(parts, model) }, ...others];
}
