import { randomUUID } from "node:crypto";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, MAX_CITATIONS, toPart } from "../../core/chunks.ts";
import { tooManyParts } from "../../core/part-budget.ts";
import { MAX_PARTS } from "../../core/validate.ts";
import { array, type Json, object, string } from "../wire/json.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { toCitation } from "./citations.ts";

/** A block that has not ended. A stream has start events only for calls; other blocks begin with their first delta. */
interface OpenBlock {
  /** Part index of a tool call. */
  readonly partIndex?: number;
  /** Whether it is a call that the provider answers itself. */
  readonly isHidden?: boolean;
  hasArguments: boolean;
  hasText: boolean;
  signature: string;
  /** Redacted reasoning, decoded. */
  readonly redacted: Buffer[];
  readonly citations: Citation[];
}

const newBlock = (of: Pick<OpenBlock, "partIndex" | "isHidden"> = {}): OpenBlock => ({
  ...of,
  hasArguments: false,
  hasText: false,
  signature: "",
  redacted: [],
  citations: [],
});

/** Maps the content blocks of one answer to parts, for whole answers and streams alike. Blocks of other kinds are ignored. */
export class AnswerContent {
  readonly #writer = new ChoiceWriter(0);
  readonly #open = new Map<unknown, OpenBlock>();
  #calls = 0;
  #begun = false;

  /** Whether any block has begun. Its content may be emitted at its end or never, such as redacted reasoning. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Number of tool calls. */
  get calls(): number {
    return this.#calls;
  }

  /** Adds a block of a whole answer. */
  addWhole(block: Json, out: CompletionChunk[]): void {
    const { toolUse, citationsContent } = block;
    const { reasoningText, ...reasoning } = object(block["reasoningContent"]);
    if (toolUse !== undefined) {
      this.open(0, { toolUse }, out);
      this.add(0, { toolUse: { input: JSON.stringify(object(object(toolUse)["input"])) } }, out);
    } else if (citationsContent !== undefined) {
      const { content, citations } = object(citationsContent);
      for (const each of array(content)) this.add(0, { text: object(each)["text"] }, out);
      for (const citation of array(citations)) this.add(0, { citation }, out);
    } else {
      const parts = object(reasoningText);
      this.add(0, { text: block["text"], reasoningContent: { ...reasoning, ...parts } }, out);
    }
    this.close(0, out);
  }

  /** Starts a block; `index` identifies it until it ends. Throws for a call without a name. */
  open(index: unknown, start: Json, out: CompletionChunk[]): void {
    if (start["toolUse"] === undefined) return;
    const { toolUseId, name, type } = object(start["toolUse"]);
    if (type === "server_tool_use") return this.#keep(index, newBlock({ isHidden: true }));
    if (string(name) === "") throw brokenCall();
    this.#calls += 1;
    const id = string(toolUseId) || `call_${randomUUID().replaceAll("-", "")}`;
    this.#keep(index, newBlock({ partIndex: this.#writer.beginCall({ id, name: string(name) }, "", out) }));
  }

  /** Adds a delta to a block. */
  add(index: unknown, delta: Json, out: CompletionChunk[]): void {
    let block = this.#open.get(index);
    if (block === undefined) this.#keep(index, (block = newBlock()));
    if (block.isHidden === true) return;
    if (block.partIndex !== undefined) {
      const input = string(object(delta["toolUse"])["input"]);
      block.hasArguments ||= input !== "";
      return this.#writer.arguments(block.partIndex, input, out);
    }
    const text = string(delta["text"]);
    block.hasText ||= text !== "";
    this.#writer.text({ case: "text", value: text }, out);
    const reasoning = object(delta["reasoningContent"]);
    this.#writer.text({ case: "reasoning", value: string(reasoning["text"]) }, out);
    block.signature += string(reasoning["signature"]);
    const redacted = string(reasoning["redactedContent"]);
    if (redacted !== "") block.redacted.push(Buffer.from(redacted, "base64"));
    const citation = delta["citation"] === undefined ? undefined : toCitation(object(delta["citation"]));
    if (citation !== undefined && block.citations.length < MAX_CITATIONS) block.citations.push(citation);
  }

  /** Ends a block. */
  close(index: unknown, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block === undefined || block.isHidden === true) return;
    if (block.partIndex !== undefined) {
      if (!block.hasArguments) this.#writer.arguments(block.partIndex, "{}", out);
      return this.#writer.endCall(block.partIndex, out);
    }
    if (block.redacted.length > 0) {
      const redacted = Buffer.concat(block.redacted).toString("base64");
      const value = { $typeName: "parley.v1.Reasoning", text: "", redacted } as const;
      return this.#writer.whole(toPart({ case: "reasoning", value }), out);
    }
    if (block.signature !== "") return this.#writer.sign("reasoning", block.signature, out);
    if (block.hasText) for (const citation of block.citations) this.#writer.cite(citation, out);
    this.#writer.endFlow(out);
  }

  /** Ends all open blocks and the answer. */
  finish(ending: Parameters<ChoiceWriter["finish"]>[0], out: CompletionChunk[]): void {
    for (const index of this.#open.keys()) this.close(index, out);
    this.#writer.finish(ending, out);
  }

  #keep(index: unknown, block: OpenBlock): void {
    if (this.#open.size >= MAX_PARTS) throw tooManyParts();
    this.#open.set(index, block);
    this.#begun = true;
  }
}
