import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { CompletionChunk, Delta } from "../../../gen/parley/v1/completion_pb.js";
import { ToolCallDeltaSchema } from "../../../gen/parley/v1/completion_pb.js";
import { ReasoningBlockSchema } from "../../../gen/parley/v1/message_pb.js";
import { deltaChunk } from "../../core/chunks.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { object, string, type Json } from "../wire/lenient.ts";

/** A reasoning block whose end has not come yet. */
interface OpenReasoning {
  readonly kind: "reasoning";
  text: string;
  signature: string;
  readonly redacted: string;
  readonly textOffset: number;
  readonly toolCallOffset: number;
}

/** A tool call whose end has not come yet. */
interface OpenCall {
  readonly kind: "call";
  readonly index: number;
  /** The arguments as the block's start gave them: whole in a whole answer, empty in a stream. */
  readonly input: Json;
  written: boolean;
}

/**
 * The content of one answer, block by block: the one mapping that whole answers and streams share. A block of a whole
 * answer is one that opens with all of its content. Blocks of kinds that we did not ask for are passed over.
 */
export class AnswerContent {
  readonly #open = new Map<unknown, OpenReasoning | OpenCall>();
  #textLength = 0;
  #calls = 0;
  #begun = false;

  /** Whether anything was said. */
  get begun(): boolean {
    return this.#begun;
  }

  /** How many tools were called. */
  get calls(): number {
    return this.#calls;
  }

  /** A block begins; `index` is the provider's name for it until it ends. Throws for a call without a name. */
  open(index: unknown, block: Json, out: CompletionChunk[]): void {
    switch (block["type"]) {
      case "text":
        return this.#sayText(string(block["text"]), out);
      case "thinking":
        this.#openReasoning(index, { signature: string(block["signature"]) });
        return this.#sayReasoning(index, string(block["thinking"]), out);
      case "redacted_thinking":
        return this.#openReasoning(index, { redacted: string(block["data"]) });
      case "tool_use":
        return this.#openCall(index, block, out);
    }
  }

  /** More of a block. */
  add(index: unknown, delta: Json, out: CompletionChunk[]): void {
    switch (delta["type"]) {
      case "text_delta":
        return this.#sayText(string(delta["text"]), out);
      case "thinking_delta":
        return this.#sayReasoning(index, string(delta["thinking"]), out);
      case "input_json_delta":
        return this.#sayArguments(index, string(delta["partial_json"]), out);
      case "signature_delta": {
        const block = this.#open.get(index);
        if (block?.kind === "reasoning") block.signature += string(delta["signature"]);
      }
    }
  }

  /** A block ends. */
  close(index: unknown, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block?.kind === "call" && !block.written) {
      this.#say(out, {
        case: "toolCall",
        value: create(ToolCallDeltaSchema, { index: block.index, arguments: JSON.stringify(block.input) }),
      });
    }
    // Without proof of its origin a block cannot come back, and its text has been said.
    if (block?.kind === "reasoning" && (block.signature !== "" || block.redacted !== "")) {
      const { text, signature, redacted, textOffset, toolCallOffset } = block;
      const value = create(ReasoningBlockSchema, { text, signature, redacted, textOffset, toolCallOffset });
      this.#say(out, { case: "reasoningBlock", value });
    }
  }

  /** The answer ends, and with it any block that did not. */
  closeAll(out: CompletionChunk[]): void {
    for (const index of this.#open.keys()) this.close(index, out);
  }

  #openReasoning(index: unknown, { signature = "", redacted = "" }: { signature?: string; redacted?: string }): void {
    const place = { textOffset: this.#textLength, toolCallOffset: this.#calls };
    this.#open.set(index, { kind: "reasoning", text: "", signature, redacted, ...place });
  }

  #openCall(index: unknown, block: Json, out: CompletionChunk[]): void {
    const name = string(block["name"]);
    if (name === "") throw brokenCall();
    const call: OpenCall = { kind: "call", index: this.#calls++, input: object(block["input"]), written: false };
    this.#open.set(index, call);
    const id = string(block["id"]) || `call_${randomUUID().replaceAll("-", "")}`;
    const value = create(ToolCallDeltaSchema, { index: call.index, id, name });
    this.#say(out, { case: "toolCall", value });
  }

  #sayText(text: string, out: CompletionChunk[]): void {
    if (text === "") return;
    this.#textLength += text.length;
    this.#say(out, { case: "text", value: text });
  }

  #sayReasoning(index: unknown, text: string, out: CompletionChunk[]): void {
    if (text === "") return;
    const block = this.#open.get(index);
    if (block?.kind === "reasoning") block.text += text;
    this.#say(out, { case: "reasoning", value: text });
  }

  #sayArguments(index: unknown, text: string, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    if (text === "" || block?.kind !== "call") return;
    block.written = true;
    this.#say(out, { case: "toolCall", value: create(ToolCallDeltaSchema, { index: block.index, arguments: text }) });
  }

  #say(out: CompletionChunk[], content: Delta["content"]): void {
    this.#begun = true;
    out.push(deltaChunk(0, content));
  }
}
