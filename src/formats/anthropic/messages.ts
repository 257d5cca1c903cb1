import { type CacheMark, type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { toPart } from "../../core/chunks.ts";
import { MAX_MESSAGES } from "../../core/validate.ts";
import { type Block, isKnown, KINDS } from "./block-schema.ts";
import { toCacheMark, toParts } from "./blocks.ts";
import { type Place, Places, type Unrecognized } from "./places.ts";
import { KNOWN_KEYS, type MessageParam, type MessagesRequest } from "./schema.ts";
import { type PartState, readState } from "./state.ts";

const BILLING = "x-anthropic-billing-header:";

/**
 * Whether a system text is the billing text that Claude Code puts first. It is not part of the conversation: Anthropic removes it, and
 * at other providers its hash, which changes with each request, would break every prompt cache.
 */
export function isBillingText(text: string): boolean {
  return text.startsWith(BILLING);
}

const ROLES = { user: Role.USER, assistant: Role.ASSISTANT, system: Role.SYSTEM } as const;

/** The messages of a request, and their places in the caller's request. */
export interface Conversation {
  readonly messages: Message[];
  readonly places: Places;
}

/** Converts the system prompt and the messages. */
export function toConversation(
  { system, messages, cache_control: control }: MessagesRequest,
  unrecognized: Unrecognized,
): Conversation {
  const writer = new ConversationWriter(unrecognized);
  if (system != null) writer.addSystem(system);
  // One more than core's limit is enough for core to refuse the request.
  messages.slice(0, MAX_MESSAGES + 1).forEach((message, index) => writer.add(message, index));
  const mark = toCacheMark(control, "");
  const last = mark && writer.messages.at(-1)?.parts.findLast(({ kind }) => kind.case !== "reasoning");
  if (last !== undefined) last.cacheMark = longerOf(last.cacheMark, mark);
  return writer;
}

/** The mark with the longer lifetime, which has the higher price. A mark without a lifetime counts as the shortest. */
function longerOf(one: CacheMark | undefined, other: CacheMark | undefined): CacheMark | undefined {
  return one === undefined || (other?.ttl?.seconds ?? 0n) > (one.ttl?.seconds ?? 0n) ? other : one;
}

/** Writes the messages of the contract. */
class ConversationWriter implements Conversation {
  readonly messages: Message[] = [];
  readonly places = new Places();
  readonly #unrecognized: Unrecognized;
  /** The last text of the message that was begun last. */
  #text: Part | undefined;

  constructor(unrecognized: Unrecognized) {
    this.#unrecognized = unrecognized;
  }

  addSystem(system: NonNullable<MessagesRequest["system"]>): void {
    if (typeof system === "string") {
      if (system !== "" && !isBillingText(system)) this.#addText(this.#begin(Role.SYSTEM, -1), system, -1);
      return;
    }
    const kept = system.flatMap((block, index) => (isBillingText(block.text) ? [] : [{ block, index }]));
    if (kept.length === 0) return;
    const parts = this.#begin(Role.SYSTEM, -1);
    for (const { block, index } of kept) this.#addBlock(parts, block, { message: -1, block: index });
  }

  /** Adds a message. Results of calls come first, as a separate message. */
  add(message: MessageParam, index: number): void {
    const { role, content } = message;
    this.#unrecognized.addKeys(message, KNOWN_KEYS.message, `messages.${index}.`);
    if (typeof content === "string") return this.#addText(this.#begin(ROLES[role], index), content, index);
    const isResult = ({ type }: Block): boolean => role === "user" && type === "tool_result";
    if (content.some(isResult)) {
      const results = this.#begin(Role.TOOL, index);
      content.forEach((block, at) => isResult(block) && this.#addBlock(results, block, { message: index, block: at }));
      if (content.every(isResult)) return;
    }
    const parts = this.#begin(ROLES[role], index);
    const states: PartState[] = [];
    content.forEach((block, at) => {
      if (isResult(block)) return;
      const state =
        isKnown(block, KINDS.message) && block.type === "thinking" ? readState(block.signature ?? "") : undefined;
      if (state === undefined) this.#addBlock(parts, block, { message: index, block: at });
      else if (state.toolCall !== undefined) states.push(state);
      else this.#signText(parts, state, { message: index, block: at });
    });
    signCalls(parts, states);
  }

  /** The parts of a new message. Consecutive messages of the model are one turn, so they share the parts of the first. */
  #begin(role: Role, index: number): Part[] {
    const last = this.messages.at(-1);
    if (role === Role.ASSISTANT && last?.role === role) return last.parts;
    this.#text = undefined;
    const message: Message = { $typeName: "parley.v1.Message", role, parts: [] };
    const at = role === Role.TOOL ? this.#placeOfResults() : this.messages.length;
    this.messages.splice(at, 0, message);
    this.places.begin(index, at);
    return message.parts;
  }

  /** Position of a message with results, directly after the message with their calls. System messages between them move behind it. */
  #placeOfResults(): number {
    const before = this.messages.findLastIndex(({ role }) => role !== Role.SYSTEM);
    return this.messages[before]?.role === Role.ASSISTANT ? before + 1 : this.messages.length;
  }

  #addText(parts: Part[], text: string, message: number): void {
    if (text !== "") this.#push(parts, toPart({ case: "text", value: text }), { message, block: -1 });
  }

  #addBlock(parts: Part[], block: Block, place: Place): void {
    const base = place.message < 0 ? "system" : `messages.${place.message}.content`;
    const at = { path: `${base}.${place.block}`, kinds: KINDS.message };
    for (const part of toParts(block, at, this.#unrecognized)) this.#push(parts, part, place);
  }

  /** Puts a state on the text before it. Without such a text, the state gets an empty text, in which it originally came. */
  #signText(parts: Part[], { signature }: PartState, place: Place): void {
    if (this.#text === undefined) this.#push(parts, toPart({ case: "text", value: "" }, signature), place);
    else this.#text.signature = signature;
  }

  #push(parts: Part[], part: Part, place: Place): void {
    parts.push(part);
    this.places.add(place);
    if (part.kind.case === "text") this.#text = part;
  }
}

/** Puts states on the calls whose IDs they have. */
function signCalls(parts: readonly Part[], states: readonly PartState[]): void {
  if (states.length === 0) return;
  const signatures = new Map(states.map(({ toolCall, signature }) => [toolCall, signature]));
  for (const part of parts) {
    const signature = part.kind.case === "toolCall" ? signatures.get(part.kind.value.id) : undefined;
    if (signature !== undefined) part.signature = signature;
  }
}
