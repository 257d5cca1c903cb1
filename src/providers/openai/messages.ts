import { type Message, Role, type ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import { toCallId } from "../wire/openai-content.ts";
import { isResponsesState } from "../wire/responses-state.ts";
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
    const field = `messages[${index}]`;
    const context: PartContext = { model, log, path: `${field}.parts` };
    if (message.role === Role.TOOL) {
      log.omitWhen(Boolean(message.name), `${field}.name`);
      for (const { images, ...result } of toToolResults(message, context)) {
        out.push({ role: "tool", ...result });
        if (images.length === 0) continue;
        pictures.push({ type: "text", text: `Images in the result of tool call ${result.tool_call_id}:` }, ...images);
      }
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
      return { role: "system", content: toContent(message.parts, context), name };
    case Role.USER:
      return { role: "user", content: toContent(message.parts, context), name };
    case Role.ASSISTANT:
      return toAssistantTurn(message, context);
    default:
      throw invalidField(context.path.replace(/parts$/, "role"), "must be system, user, assistant or tool");
  }
}

/**
 * Converts an earlier answer. Images are omitted and reported, because assistant messages cannot hold them. Speech is
 * referenced by ID for models with speech output, else sent as its transcript. Reasoning is sent to models that check it;
 * other servers refuse the field. Throws `invalid_request` for documents, and for speech with neither ID nor transcript.
 */
function toAssistantTurn(message: Message, context: PartContext): OpenAiAssistantMessage {
  const { preservedReasoning } = context.model.capabilities;
  const said = sort(message, context);
  const { audioId } = said;
  const texts = [...said.texts, ...said.transcripts].filter((text) => text !== "");
  const content = packParts(
    texts.map((text): OpenAiPart => ({ type: "text", text })),
    context.model,
  );
  const silent = content === "" && (said.calls.length > 0 || audioId !== undefined || said.refusal !== "");
  return {
    role: "assistant",
    content: silent ? null : content,
    name: message.name || undefined,
    refusal: said.refusal || undefined,
    audio: audioId === undefined ? undefined : { id: audioId },
    tool_calls: said.calls.length > 0 ? said.calls : undefined,
    reasoning_content: preservedReasoning && said.reasoning !== "" ? said.reasoning : undefined,
    extra_content: preservedReasoning ? toExtraContent(said.signature) : undefined,
  };
}

/** The parts of an assistant message, sorted by their fields in this dialect. */
interface Said {
  readonly texts: string[];
  /** Transcripts of speech that is not referenced by ID. */
  readonly transcripts: string[];
  /** ID of the first speech that can be referenced; a message can have only one. */
  audioId: string | undefined;
  readonly calls: OpenAiToolCall[];
  reasoning: string;
  refusal: string;
  /** Signature of the last text with one. */
  signature: string;
}

function sort({ parts }: Message, { model, log, path }: PartContext): Said {
  const said: Said = {
    texts: [],
    transcripts: [],
    audioId: undefined,
    calls: [],
    reasoning: "",
    refusal: "",
    signature: "",
  };
  const speaks = model.outputModalities.has(Modality.AUDIO);
  parts.forEach(({ kind, signature, cacheMark }, index) => {
    const field = `${path}[${index}]`;
    log.omitWhen(cacheMark !== undefined, `${field}.cache_mark`);
    switch (kind.case) {
      case "text":
        said.texts.push(kind.value);
        said.signature = signature || said.signature;
        return;
      case "reasoning":
        said.reasoning += kind.value.text;
        return;
      case "refusal":
        said.refusal += kind.value;
        return;
      case "toolCall":
        said.calls.push(toToolCall(kind.value, model.capabilities.preservedReasoning ? signature : ""));
        return;
      case "image":
      case "native":
        return log.omit(field);
      case "file":
      case "video":
        throw invalidField(field, `an assistant message cannot hold a ${kind.case}`);
      case "audio":
        if (speaks && said.audioId === undefined && kind.value.id !== "") said.audioId = kind.value.id;
        else if (kind.value.transcript !== "") said.transcripts.push(kind.value.transcript);
        else throw invalidField(field, "this model can neither be referred to this speech nor be told what was said");
        return;
      default:
    }
  });
  return said;
}

/** A tool message of this dialect, and the images of its result, which it cannot hold. */
interface SplitResult {
  readonly tool_call_id: string;
  readonly content: OpenAiContent;
  readonly images: readonly OpenAiPart[];
}

function toToolResults({ parts }: Message, context: PartContext): SplitResult[] {
  const { log, model, path } = context;
  return parts.flatMap(({ kind, cacheMark }, index) => {
    const field = `${path}[${index}]`;
    if (kind.case === undefined) return [];
    if (kind.case !== "toolResult") throw invalidField(field, "must be a tool result in a tool message");
    log.omitWhen(cacheMark !== undefined, `${field}.cache_mark`);
    log.omitWhen(kind.value.isError, `${field}.tool_result.is_error`);
    const content = toContent(kind.value.parts, { ...context, path: `${field}.tool_result.parts` });
    const { text, images } = splitToolResult(content);
    return {
      tool_call_id: toCallId(kind.value.toolCallId, MAX_CALL_ID_CHARS),
      content: packParts(text, model),
      images,
    };
  });
}

function toToolCall({ id: callId, name, input }: ToolCall, signature: string): OpenAiToolCall {
  const id = toCallId(callId, MAX_CALL_ID_CHARS);
  const extra_content = toExtraContent(signature);
  return input.case === "customInput"
    ? { id, type: "custom", custom: { name, input: input.value }, extra_content }
    : { id, type: "function", function: { name, arguments: input.value || "{}" }, extra_content };
}

function toExtraContent(signature: string | undefined): OpenAiExtraContent | undefined {
  if (!signature || isResponsesState(signature)) return undefined;
  return { google: { thought_signature: signature } };
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
