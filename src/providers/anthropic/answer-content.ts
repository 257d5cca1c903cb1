import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, type Delta, ToolCallDeltaSchema } from "../../../gen/parley/v1/completion_pb.js";
import { ReasoningBlockSchema } from "../../../gen/parley/v1/message_pb.js";
import { deltaChunk } from "../../core/chunks.ts";
import { type Json, object, string } from "../wire/json.ts";
import { brokenCall } from "../wire/response-failure.ts";

/** A reasoning block that has not ended. */
interface OpenReasoning {
  readonly kind: "reasoning";
  text: string;
  signature: string;
  readonly redacted: string;
  readonly textOffset: number;
  readonly toolCallOffset: number;
}

/** A tool call that has not ended. */
interface OpenCall {
  readonly kind: "call";
  readonly index: number;
  /** Arguments from the block's start: complete in a whole answer, empty in a stream. */
  readonly input: Json;
  written: boolean;
}

/**
 * Maps the content blocks of one answer to chunks, for whole answers and streams alike: a block of a whole answer opens
 * with all of its content. Ignores blocks of unknown types.
 */
export class AnswerContent {
  readonly #open = new Map<unknown, OpenReasoning | OpenCall>();
  #textLength = 0;
  #calls = 0;
  #begun = false;

  /** Whether any content was emitted. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Number of tool calls. */
  get calls(): number {
    return this.#calls;
  }

  /** Starts a block; `index` identifies it until it ends. Throws for a call without a name. */
  open(index: unknown, block: Json, out: CompletionChunk[]): void {
    switch (block["type"]) {
      case "text":
        return this.#emitText(string(block["text"]), out);
      case "thinking":
        this.#openReasoning(index, { signature: string(block["signature"]) });
        return this.#emitReasoning(index, string(block["thinking"]), out);
      case "redacted_thinking":
        return this.#openReasoning(index, { redacted: string(block["data"]) });
      case "tool_use":
        return this.#openCall(index, block, out);
    }
  }

  /** Adds a delta to a block. */
  add(index: unknown, delta: Json, out: CompletionChunk[]): void {
    switch (delta["type"]) {
      case "text_delta":
        return this.#emitText(string(delta["text"]), out);
      case "thinking_delta":
        return this.#emitReasoning(index, string(delta["thinking"]), out);
      case "input_json_delta":
        return this.#emitArguments(index, string(delta["partial_json"]), out);
      case "signature_delta": {
        const block = this.#open.get(index);
        if (block?.kind === "reasoning") block.signature += string(delta["signature"]);
      }
    }
  }

  /** Ends a block. */
  close(index: unknown, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block?.kind === "call" && !block.written) {
      this.#emit(out, {
        case: "toolCall",
        value: create(ToolCallDeltaSchema, { index: block.index, arguments: JSON.stringify(block.input) }),
      });
    }
    // A block without a signature cannot be sent back, and its text has already been emitted.
    if (block?.kind === "reasoning" && (block.signature !== "" || block.redacted !== "")) {
      const { text, signature, redacted, textOffset, toolCallOffset } = block;
      const value = create(ReasoningBlockSchema, { text, signature, redacted, textOffset, toolCallOffset });
      this.#emit(out, { case: "reasoningBlock", value });
    }
  }

  /** Ends all open blocks at the end of the answer. */
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
    this.#emit(out, { case: "toolCall", value });
  }

  #emitText(text: string, out: CompletionChunk[]): void {
    if (text === "") return;
    this.#textLength += text.length;
    this.#emit(out, { case: "text", value: text });
  }

  #emitReasoning(index: unknown, text: string, out: CompletionChunk[]): void {
    if (text === "") return;
    const block = this.#open.get(index);
    if (block?.kind === "reasoning") block.text += text;
    this.#emit(out, { case: "reasoning", value: text });
  }

  #emitArguments(index: unknown, text: string, out: CompletionChunk[]): void {
    const block = this.#open.get(index);
    if (text === "" || block?.kind !== "call") return;
    block.written = true;
    this.#emit(out, { case: "toolCall", value: create(ToolCallDeltaSchema, { index: block.index, arguments: text }) });
  }

  #emit(out: CompletionChunk[], content: Delta["content"]): void {
    this.#begun = true;
    out.push(deltaChunk(0, content));
  }
}
