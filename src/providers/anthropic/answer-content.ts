import { randomUUID } from "node:crypto";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { ChoiceWriter, MAX_CITATIONS, toPart } from "../../core/chunks.ts";
import { type PartBudget, tooManyParts } from "../../core/part-budget.ts";
import { countValues } from "../../encoding/json-size.ts";
import { MAX_PARTS } from "../../core/validate.ts";
import { array, type Json, object, parsed, string } from "../wire/json.ts";
import { addDelta, furtherOf } from "../wire/further-fields.ts";
import { toEventJson } from "../wire/native-words.ts";
import type { Redact } from "../wire/redaction.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { toCitation } from "./citations.ts";

/** A tool call that has not ended. */
interface OpenCall {
  readonly kind: "call";
  readonly partIndex: number;
  /** JSON of the arguments from the block's start: complete in a whole answer, empty in a stream. */
  readonly input: string;
  written: boolean;
}

const DIALECT = "anthropic";

const OF_CALL: ReadonlySet<string> = new Set(["type", "name", "input"]);
const OF_TEXT: ReadonlySet<string> = new Set(["type", "text", "citations"]);
const OF_THINKING: ReadonlySet<string> = new Set(["type", "thinking", "signature"]);
const OF_REDACTED: ReadonlySet<string> = new Set(["type", "data"]);

/** Fields that name the block of a delta. */
const PLACES: ReadonlySet<string> = new Set(["index"]);

/** A block of a type that the contract does not have. */
interface OpenNative {
  readonly kind: "native";
  readonly block: Record<string, unknown>;
  /** JSON of the input of a tool that the provider runs, as far as it has come. */
  input: string;
}

/** Reasoning with its signature so far. */
interface OpenReasoning {
  readonly kind: "reasoning";
  signature: string;
}

interface OpenText {
  readonly kind: "text";
  /** Whether any text has come: citations need one. */
  begun: boolean;
  readonly citations: Json[];
}

/**
 * Maps the content blocks of one answer to parts, for whole answers and streams alike: a block of a whole answer opens
 * with all of its content. Blocks of other types become native blocks.
 */
export class AnswerContent {
  readonly #budget: PartBudget;
  readonly #writer: ChoiceWriter;
  readonly #open = new Map<unknown, OpenText | OpenReasoning | OpenCall | OpenNative>();
  readonly #redact: Redact;
  #calls = 0;
  #isHidden = false;

  /** `budget`: that of the answer; `redact` removes the provider's credentials from everything but content. */
  constructor(budget: PartBudget, redact: Redact) {
    this.#budget = budget;
    this.#writer = new ChoiceWriter(0, budget);
    this.#redact = redact;
  }

  /** Whether any content was emitted, or the model has begun what is emitted later or never, such as reasoning that is not shown. */
  get begun(): boolean {
    return this.#writer.begun || this.#isHidden;
  }

  /** Number of tool calls. */
  get calls(): number {
    return this.#calls;
  }

  /** Starts a block; `index` identifies it until it ends. Throws for a call without a name, and for more open blocks than parts. */
  open(index: unknown, block: Json, out: CompletionChunk[]): void {
    if (this.#open.size >= MAX_PARTS) throw tooManyParts();
    if (block["type"] !== "text") this.#isHidden = true;
    switch (block["type"]) {
      case "text":
        this.#openText(index, array(block["citations"]).slice(0, MAX_CITATIONS));
        this.#writer.describeNext(this.#further(block, OF_TEXT));
        return this.#addText(index, string(block["text"]), out);
      case "thinking":
        this.#open.set(index, { kind: "reasoning", signature: string(block["signature"]) });
        this.#writer.describeNext(this.#further(block, OF_THINKING));
        return this.#writer.text({ case: "reasoning", value: string(block["thinking"]) }, out);
      case "redacted_thinking":
        return this.#addRedacted(block, out);
      case "tool_use":
        return this.#openCall(index, block, out);
      default:
        if (string(block["type"]) === "") return;
        this.#budget.takeValues(countValues(block));
        this.#open.set(index, { kind: "native", block: { ...block }, input: "" });
    }
  }

  /** Adds an event of a type that the contract does not have: about an open block, or about the answer. */
  addEvent(event: Json, out: CompletionChunk[]): void {
    const json = toEventJson(event, { places: PLACES, answer: "message", redact: this.#redact });
    if (json === undefined) return;
    const partIndex = this.#partOf(event["index"]);
    if (event["index"] === undefined) this.#writer.event(DIALECT, json, out);
    else if (partIndex !== undefined) this.#writer.eventOf(partIndex, { dialect: DIALECT, json }, out);
  }

  /** The part of an open block; undefined for one without content so far. */
  #partOf(index: unknown): number | undefined {
    const block = this.#open.get(index);
    if (block?.kind === "call") return block.partIndex;
    return block !== undefined && block.kind === this.#writer.flowing ? this.#writer.flowingPart : undefined;
  }

  /** Adds a delta to a block. */
  add(index: unknown, delta: Json, out: CompletionChunk[]): void {
    switch (delta["type"]) {
      case "text_delta":
        return this.#addText(index, string(delta["text"]), out);
      case "citations_delta": {
        const block = this.#open.get(index);
        if (block?.kind !== "text" || block.citations.length >= MAX_CITATIONS) return;
        this.#budget.takeValues(countValues(delta["citation"]));
        block.citations.push(object(delta["citation"]));
        return;
      }
      case "thinking_delta":
        return this.#writer.text({ case: "reasoning", value: string(delta["thinking"]) }, out);
      case "input_json_delta":
        return this.#addArguments(index, string(delta["partial_json"]), out);
      case "signature_delta": {
        const block = this.#open.get(index);
        if (block?.kind === "reasoning") block.signature += string(delta["signature"]);
        return;
      }
      default: {
        const block = this.#open.get(index);
        if (block?.kind !== "native")
          return string(delta["type"]) === ""
            ? undefined
            : this.addEvent({ type: "content_block_delta", index, delta }, out);
        this.#budget.takeJson(JSON.stringify(delta));
        addDelta(block.block, delta);
      }
    }
  }

  /** Ends a block. */
  close(index: unknown, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block?.kind === "call") {
      if (!block.written) this.#writer.arguments(block.partIndex, block.input, out);
      this.#writer.endCall(block.partIndex, out);
    } else if (block?.kind === "native") {
      const input = block.input === "" ? {} : { input: parsed(block.input) ?? block.input };
      this.#writer.native({ dialect: DIALECT, json: JSON.stringify({ ...block.block, ...input }) }, out);
    } else if (block?.kind === "reasoning" && block.signature !== "") {
      this.#writer.sign("reasoning", block.signature, out);
    } else if (block?.kind === "text") {
      const citations = block.begun ? block.citations.map(toCitation) : [];
      for (const citation of citations) if (citation !== undefined) this.#writer.cite(citation, out);
      this.#writer.endFlow(out);
    } else if (block !== undefined) this.#writer.endFlow(out);
  }

  /** Ends all open blocks and the answer; `refusal` explains why the model did not answer, empty without one. */
  finish(
    { refusal, ...ending }: Parameters<ChoiceWriter["finish"]>[0] & { readonly refusal: string },
    out: CompletionChunk[],
  ): void {
    for (const index of this.#open.keys()) this.close(index, out);
    this.#writer.text({ case: "refusal", value: refusal }, out);
    this.#writer.finish(ending, out);
  }

  #openText(index: unknown, citations: readonly unknown[]): void {
    for (const citation of citations) this.#budget.takeValues(countValues(citation));
    this.#open.set(index, { kind: "text", begun: false, citations: citations.map(object) });
  }

  #addText(index: unknown, text: string, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    if (block?.kind === "text") block.begun ||= text !== "";
    this.#writer.text({ case: "text", value: text }, out);
  }

  #addRedacted(block: Json, out: CompletionChunk[]): void {
    const redacted = string(block["data"]);
    if (redacted === "") return;
    const value = { $typeName: "parley.v1.Reasoning", text: "", redacted } as const;
    this.#writer.whole(toPart({ case: "reasoning", value }, "", this.#further(block, OF_REDACTED)), out);
  }

  /** Fields of a block that the contract does not have. */
  #further(block: Json, known: ReadonlySet<string>): Record<string, string> {
    return furtherOf(block, { prefix: `${DIALECT}.`, known, budget: this.#budget, redact: this.#redact });
  }

  #openCall(index: unknown, block: Json, out: CompletionChunk[]): void {
    const name = string(block["name"]);
    if (name === "") throw brokenCall();
    this.#calls += 1;
    const id = string(block["id"]) || `call_${randomUUID().replaceAll("-", "")}`;
    const partIndex = this.#writer.beginCall({ id, name, details: this.#further(block, OF_CALL) }, "", out);
    this.#open.set(index, { kind: "call", partIndex, input: JSON.stringify(object(block["input"])), written: false });
  }

  #addArguments(index: unknown, text: string, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    if (block?.kind === "native") {
      this.#budget.takeJson(text);
      block.input += text;
    }
    if (text === "" || block?.kind !== "call") return;
    block.written = true;
    this.#writer.arguments(block.partIndex, text, out);
  }
}
