import { type Image, type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import { toCallId } from "../wire/openai-content.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { type PartContext, toContent, toNativeItem } from "./parts.ts";
import { readState } from "./state.ts";
import type { AnswerMessage, InputContent, InputItem, InputMessage } from "./wire.ts";

/** Limit of characters of call IDs at OpenAI. */
const MAX_CALL_ID_CHARS = 64;

/** Converts the conversation to items, in their order. Throws `invalid_request` for unsupported content. */
export function toItems(messages: readonly Message[], model: UpstreamModel, log: TranslationLog): InputItem[] {
  const items: InputItem[] = [];
  const earlier: Earlier = { custom: new Set(), reasoning: new Map() };
  messages.forEach((message, index) => {
    const field = `messages[${index}]`;
    if (message.role !== Role.ASSISTANT) endTurn(items, earlier, log);
    const context: PartContext = { model, log, path: `${field}.parts` };
    log.omitWhen(Boolean(message.name), `${field}.name`);
    switch (message.role) {
      case Role.SYSTEM:
        items.push({ type: "message", role: "system", content: toContent(message.parts, context) });
        return;
      case Role.USER:
        items.push({ type: "message", role: "user", content: toContent(message.parts, context) });
        return;
      case Role.ASSISTANT:
        items.push(...new AnswerItems(context, earlier).read(message));
        return;
      case Role.TOOL:
        items.push(...toOutputs(message, context, earlier.custom));
        return;
      default:
        throw invalidField(`${field}.role`, "must be system, user, assistant or tool");
    }
  });
  endTurn(items, earlier, log);
  return model.capabilities.midConversationSystem ? items : gatherSystemItems(items, model);
}

/** Facts of the conversation so far. */
interface Earlier {
  /** IDs of calls of custom tools: their results are items of another type. */
  readonly custom: Set<string>;
  /** Paths of the reasoning that is sent back. */
  readonly reasoning: Map<InputItem, string>;
}

/** Leaves out and logs reasoning at the end of the model's turn: the service refuses reasoning that no item of the model follows. */
function endTurn(items: InputItem[], { reasoning }: Earlier, log: TranslationLog): void {
  for (let last = items.at(-1); last?.type === "reasoning"; last = items.at(-1)) {
    items.pop();
    const path = reasoning.get(last);
    if (path !== undefined) log.omit(path);
  }
}

/** Makes the items of one earlier answer. */
class AnswerItems {
  readonly #context: PartContext;
  readonly #earlier: Earlier;
  readonly #items: InputItem[] = [];
  /** Content of the message in progress. */
  #said: Exclude<AnswerMessage["content"], string>[number][] = [];

  constructor(context: PartContext, earlier: Earlier) {
    this.#context = context;
    this.#earlier = earlier;
  }

  /** Returns the items. Only reasoning with the provider's encrypted state is sent back. */
  read({ parts }: Message): readonly InputItem[] {
    parts.forEach((part, index) => this.#add(part, `${this.#context.path}[${index}]`));
    this.#endMessage();
    return this.#items;
  }

  #add({ kind, signature, cacheMark }: Part, path: string): void {
    const { log, model } = this.#context;
    log.omitWhen(cacheMark !== undefined, `${path}.cache_mark`);
    switch (kind.case) {
      case "text": {
        if (kind.value !== "") this.#said.push({ type: "output_text", text: kind.value });
        const state = readState(signature);
        if (state !== undefined && "phase" in state) this.#endMessage(state.phase);
        return;
      }
      case "refusal":
        this.#said.push({ type: "refusal", refusal: kind.value });
        return;
      case "reasoning": {
        const state = model.capabilities.reasoning === "none" ? undefined : readState(signature);
        if (state === undefined || !("reasoning" in state)) return;
        const item: InputItem = { type: "reasoning", ...state.reasoning };
        this.#earlier.reasoning.set(item, path);
        return this.#push(item, state.at);
      }
      case "toolCall": {
        const { id, name, input } = kind.value;
        const call_id = toCallId(id, MAX_CALL_ID_CHARS);
        if (input.case !== "customInput")
          return this.#push({ type: "function_call", call_id, name, arguments: input.value || "{}" });
        this.#earlier.custom.add(id);
        return this.#push({ type: "custom_tool_call", call_id, name, input: input.value });
      }
      case "image":
        return this.#addImage(kind.value, signature, path);
      case "native": {
        const item = toNativeItem(kind.value, { log, path });
        if (item !== undefined) this.#push(item as unknown as InputItem);
        return;
      }
      case "audio":
        if (kind.value.transcript === "")
          throw invalidField(path, "this model can neither be referred to this speech nor be told what was said");
        this.#said.push({ type: "output_text", text: kind.value.transcript });
        return;
      case "file":
      case "video":
        throw invalidField(path, `an assistant message cannot hold a ${kind.case}`);
      default:
    }
  }

  /** Adds a picture that the provider made. Pictures of other providers have no ID, and are left out. */
  #addImage({ source }: Image, signature: string, path: string): void {
    const { log } = this.#context;
    const state = readState(signature);
    if (state === undefined || !("image" in state) || source.case !== "data") return log.omit(path);
    const result = log.base64(source.value);
    this.#push({ type: "image_generation_call", id: state.image, status: "completed", result });
  }

  /** `at`: the item's index. Default: the end. */
  #push(item: InputItem, at?: number): void {
    this.#endMessage();
    this.#items.splice(at ?? this.#items.length, 0, item);
  }

  /** Ends the message in progress. A single text is sent as a string, which more servers accept than a list. */
  #endMessage(phase?: string): void {
    const [only] = this.#said;
    if (only === undefined) return;
    const content = this.#said.length === 1 && only.type === "output_text" ? only.text : this.#said;
    this.#items.push({ type: "message", role: "assistant", content, phase });
    this.#said = [];
  }
}

function toOutputs({ parts }: Message, context: PartContext, custom: ReadonlySet<string>): InputItem[] {
  const { log, path } = context;
  return parts.flatMap(({ kind, cacheMark }, index): InputItem[] => {
    const field = `${path}[${index}]`;
    if (kind.case === undefined) return [];
    if (kind.case !== "toolResult") throw invalidField(field, "must be a tool result in a tool message");
    const { toolCallId, parts: said, isError } = kind.value;
    log.omitWhen(cacheMark !== undefined, `${field}.cache_mark`);
    log.omitWhen(isError, `${field}.tool_result.is_error`);
    const type = custom.has(toolCallId) ? "custom_tool_call_output" : "function_call_output";
    const output = toContent(said, { ...context, path: `${field}.tool_result.parts` });
    return [{ type, call_id: toCallId(toolCallId, MAX_CALL_ID_CHARS), output }];
  });
}

/**
 * Joins all system messages into one at the front, for servers that accept none elsewhere. For models that check the conversation,
 * later ones stay in place as user messages, so that the front does not change.
 */
function gatherSystemItems(items: readonly InputItem[], model: UpstreamModel): InputItem[] {
  const start = items.findIndex((item) => !isSystem(item));
  const leading = start === -1 ? items : items.slice(0, start);
  const rest = start === -1 ? [] : items.slice(start);
  const stays = model.capabilities.preservedReasoning;
  const system = [...leading, ...(stays ? [] : rest.filter(isSystem))].filter(isSystem);
  const others = stays
    ? rest.map((item): InputItem => (isSystem(item) ? { ...item, role: "user" } : item))
    : rest.filter((item) => !isSystem(item));
  if (system.length === 0) return others;
  const [first] = system;
  if (system.length === 1 && first !== undefined) return [first, ...others];
  return [{ type: "message", role: "system", content: system.flatMap(toContents) }, ...others];
}

/** The content of a message as a list. */
export function toContents({ content }: InputMessage): readonly InputContent[] {
  return typeof content === "string" ? [{ type: "input_text", text: content }] : content;
}

/** Whether an item is a system message. */
export function isSystem(item: InputItem): item is InputMessage {
  return item.type === "message" && item.role === "system";
}
