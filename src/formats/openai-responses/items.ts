import { create } from "@bufbuild/protobuf";
import {
  FileSchema,
  ImageSchema,
  type Message,
  type Part,
  Role,
  type ToolCall,
} from "../../../gen/parley/v1/message_pb.js";
import { toPart } from "../../core/chunks.ts";
import { invalidField } from "../../core/failure.ts";
import { MAX_MESSAGES, MAX_UNRECOGNIZED } from "../../core/validate.ts";
import { readDataUrl } from "../data-url.ts";
import { readAudio, readFile, readImage } from "../openai-media.ts";
import { readState } from "./envelope.ts";
import { type Content, type ContentPart, type Item, typeOf } from "./item-schema.ts";
import { INSTRUCTIONS, type Place, Places, WHOLE } from "./places.ts";
import { toNative, withoutOwnId } from "./native.ts";
import { type ToolNames, unsupported } from "./tools.ts";

/** The messages of a conversation. */
export interface ReadItems {
  readonly messages: Message[];
  readonly places: Places;
  /** Items that were left out, such as `input[3]`; at most MAX_UNRECOGNIZED. */
  readonly omitted: readonly string[];
}

type MessageItem = Extract<Item, { role: string }>;
type ItemOf<T extends Item["type"]> = Extract<Item, { type: T }>;
type OutputItem = ItemOf<"function_call_output" | "custom_tool_call_output">;

const isOutput = ({ type }: Item): boolean => type === "function_call_output" || type === "custom_tool_call_output";

const ROLES = { user: Role.USER, assistant: Role.ASSISTANT, system: Role.SYSTEM, developer: Role.SYSTEM } as const;

/**
 * Makes messages of items. All items of the model up to the user's next item are one message, and consecutive results are another. Stops
 * after one message more than core accepts.
 */
export class ItemReader {
  readonly #names: ToolNames;
  readonly #messages: Message[] = [];
  readonly #places = new Places();
  readonly #omitted: string[] = [];
  /** Pictures of the last message, by item ID. */
  readonly #pictures = new Map<string, Part>();
  /** Calls of the last message, by ID; the first one of each. */
  readonly #calls = new Map<string, Part>();
  /** State by call ID, for calls of the last message that were not read yet. */
  readonly #signatures = new Map<string, string>();
  /** Context items between the results that are being read. They move behind the results, which must follow their calls. */
  readonly #context: (readonly [part: Part, place: Place])[] = [];

  constructor(names: ToolNames) {
    this.#names = names;
  }

  /** Reads the conversation after the instructions. */
  read(instructions: string | null | undefined, input: string | readonly Item[]): ReadItems {
    if (instructions != null && instructions !== "") this.#text(Role.SYSTEM, instructions, [INSTRUCTIONS, WHOLE]);
    if (typeof input === "string") this.#text(Role.USER, input, [0, WHOLE]);
    else
      for (let at = 0; at < input.length && this.#messages.length <= MAX_MESSAGES; at++) {
        if (!isOutput(input[at]!)) this.#endResults();
        this.#item(input[at]!, at, `input[${at}]`);
      }
    this.#endResults();
    return { messages: this.#messages, places: this.#places, omitted: this.#omitted };
  }

  #item(item: Item, at: number, path: string): void {
    switch (typeOf(item) as Item["type"]) {
      case "message":
        return this.#message(item as MessageItem, at, path);
      case "function_call":
      case "custom_tool_call":
        return this.#call(item as ItemOf<"function_call" | "custom_tool_call">, at);
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#output(item as OutputItem, at, path);
      case "reasoning":
        return this.#reasoning(item as ItemOf<"reasoning">, at, path);
      case "image_generation_call":
        return this.#picture(item as ItemOf<"image_generation_call">, at, path);
      case "item_reference":
        throw unsupported(
          path,
          `${path}: item references are not supported; Parley keeps no items: send the item itself.`,
        );
      default:
        // Native results are in the same message as native calls, so that the items keep their order.
        this.#said(toPart(toNative(withoutOwnId(item))), [at, WHOLE]);
    }
  }

  #message({ role, content }: MessageItem, at: number, path: string): void {
    const parts =
      typeof content === "string"
        ? content
        : content.map((part, index) => toContent(part, `${path}.content[${index}]`, role));
    if (role === "assistant") return this.#answer(parts, at);
    if (typeof parts === "string") return this.#text(ROLES[role], parts, [at, WHOLE]);
    this.#add(
      ROLES[role],
      parts,
      parts.map((_, index): Place => [at, index]),
    );
  }

  #answer(parts: string | readonly Part[], at: number): void {
    if (typeof parts !== "string") parts.forEach((part, index) => this.#said(part, [at, index]));
    else if (parts !== "") this.#said(toPart({ case: "text", value: parts }), [at, WHOLE]);
  }

  #call(item: ItemOf<"function_call" | "custom_tool_call">, at: number): void {
    const { call_id: id, name, namespace } = item;
    const value: ToolCall = {
      $typeName: "parley.v1.ToolCall",
      id,
      name: this.#names.flat(name, namespace),
      input:
        item.type === "function_call"
          ? { case: "argumentsJson", value: item.arguments }
          : { case: "customInput", value: item.input },
    };
    const signature = this.#last(Role.ASSISTANT) === undefined ? "" : (this.#signatures.get(id) ?? "");
    const part = toPart({ case: "toolCall", value }, signature);
    this.#said(part, [at, WHOLE]);
    if (!this.#calls.has(id)) this.#calls.set(id, part);
  }

  #output({ call_id: toolCallId, name, output }: OutputItem, at: number, path: string): void {
    const parts = toResult(output, `${path}.output`);
    if (toolCallId == null) {
      if (name == null) throw invalidField(`${path}.call_id`, "is required");
      for (const part of parts) this.#context.push([part, [at, WHOLE]]);
      return;
    }
    const value = { $typeName: "parley.v1.ToolResult", toolCallId, parts, isError: false } as const;
    const part = toPart({ case: "toolResult", value });
    const last = this.#last(Role.TOOL);
    if (last === undefined) this.#add(Role.TOOL, [part], [[at, WHOLE]]);
    else {
      last.parts.push(part);
      this.#places.add([at, WHOLE]);
    }
  }

  #endResults(): void {
    if (this.#context.length === 0) return;
    const context = this.#context.splice(0);
    this.#add(
      Role.USER,
      context.map(([part]) => part),
      context.map(([, place]) => place),
    );
  }

  /** Adds reasoning. State of other servers is left out. Without a signature, the reasoning is the shown text. */
  #reasoning(item: ItemOf<"reasoning">, at: number, path: string): void {
    const { encrypted_content: given, summary, content } = item;
    if (given == null || given === "") {
      const text = [...(summary ?? []), ...(content ?? [])].map((thought) => thought.text ?? "").join("\n\n");
      if (text !== "") this.#thought({ text }, at);
      return;
    }
    const state = readState(given);
    if (state === undefined) return this.#omit(path);
    if ("reasoning" in state) return this.#thought(state.reasoning, at);
    if ("tool_call" in state) return this.#signCall(state.tool_call, state.signature);
    if ("text" in state) return this.#signText(state.signature, at);
    const picture = this.#pictures.get(state.image);
    if (picture === undefined) this.#omit(path);
    else picture.signature = state.signature;
  }

  #thought(
    {
      text = "",
      redacted = "",
      signature = "",
    }: { readonly text?: string; readonly redacted?: string; readonly signature?: string },
    at: number,
  ): void {
    const value = { $typeName: "parley.v1.Reasoning", text, redacted } as const;
    this.#said(toPart({ case: "reasoning", value }, signature), [at, WHOLE]);
  }

  /** Puts a state on its call. The state comes before the call, or after it if it arrived late. */
  #signCall(id: string, signature: string): void {
    const call = this.#calls.get(id);
    if (call !== undefined) call.signature = signature;
    else {
      // Begins the message to which the call belongs.
      this.#assistant();
      this.#signatures.set(id, signature);
    }
  }

  #signText(signature: string, at: number): void {
    const last = this.#last(Role.ASSISTANT)?.parts.at(-1);
    if (last?.kind.case === "text" && last.signature === "") last.signature = signature;
    else this.#said(toPart({ case: "text", value: "" }, signature), [at, WHOLE]);
  }

  #picture({ id, result }: ItemOf<"image_generation_call">, at: number, path: string): void {
    if (result == null || result === "") return;
    // `readDataUrl` detects the type by the first bytes.
    const content = readDataUrl(`data:image/png;base64,${result}`);
    if (content === undefined) throw invalidField(`${path}.result`, "must be base64");
    const image = create(ImageSchema, { mediaType: content.mediaType });
    image.source = { case: "data", value: content.data };
    const part = toPart({ case: "image", value: image });
    this.#said(part, [at, WHOLE]);
    if (id != null) this.#pictures.set(id, part);
  }

  #text(role: Role, text: string, place: Place): void {
    this.#add(role, [toPart({ case: "text", value: text })], [place]);
  }

  /** Adds a part to the current message of the model. */
  #said(part: Part, place: Place): void {
    this.#assistant().parts.push(part);
    this.#places.add(place);
  }

  #assistant(): Message {
    return this.#last(Role.ASSISTANT) ?? this.#add(Role.ASSISTANT, [], []);
  }

  #last(role: Role): Message | undefined {
    const last = this.#messages.at(-1);
    return last?.role === role ? last : undefined;
  }

  #add(role: Role, parts: Part[], places: readonly Place[]): Message {
    const message: Message = { $typeName: "parley.v1.Message", role, parts };
    this.#messages.push(message);
    this.#places.begin();
    for (const place of places) this.#places.add(place);
    // Clearing an empty map allocates.
    for (const map of [this.#pictures, this.#calls, this.#signatures]) if (map.size > 0) map.clear();
    return message;
  }

  #omit(path: string): void {
    if (this.#omitted.length < MAX_UNRECOGNIZED) this.#omitted.push(path);
  }
}

/** A reasoning item with its part's signature in place of the state that contains it. Any other item without the gateway's ID. */
export function toSignedItem(item: Item): Item {
  if (item.type !== "reasoning" || !("encrypted_content" in item)) return withoutOwnId(item);
  const state = readState(item.encrypted_content ?? "");
  if (state === undefined) return item;
  const { signature = "", redacted = "" } = "reasoning" in state ? state.reasoning : { ...state, redacted: "" };
  return { type: "reasoning", encrypted_content: signature || redacted };
}

function toResult(output: Content, path: string): Part[] {
  if (typeof output === "string") return output === "" ? [] : [toPart({ case: "text", value: output })];
  return output.map((part, index) => toContent(part, `${path}[${index}]`, "user"));
}

function toContent(part: ContentPart, path: string, role: string): Part {
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return toPart({ case: "text", value: part.text });
    case "refusal":
      return toPart({ case: role === "assistant" ? "refusal" : "text", value: part.refusal });
    case "input_image":
      if (part.image_url == null) throw invalidField(`${path}.image_url`, "is required: Parley keeps no files");
      return toPart({ case: "image", value: readImage(part.image_url, part.detail, `${path}.image_url`) });
    case "input_audio":
      return toPart({ case: "audio", value: readAudio(part.input_audio, `${path}.input_audio`) });
    case "input_file": {
      if (part.file_url == null) return toPart({ case: "file", value: readFile(part, path) });
      const file = create(FileSchema, { name: part.filename ?? "" });
      file.source = { case: "url", value: part.file_url };
      return toPart({ case: "file", value: file });
    }
  }
}
