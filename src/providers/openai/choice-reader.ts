import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, FinishReason, type PartDelta } from "../../../gen/parley/v1/completion_pb.js";
import { type Citation, type TokenLogprob, TokenLogprobSchema } from "../../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, firstDelta, type PartBudget, toPart } from "../../core/chunks.ts";
import { array, isObject, type Json, number, object, string } from "../wire/json.ts";
import { type Content, readContents } from "./answer-content.ts";
import { isKnown, toFinishReason } from "./finish-reason.ts";
import { ToolCallReader } from "./tool-call-reader.ts";

/** Reads one choice of a whole answer or a stream. */
export class ChoiceReader {
  readonly #writer: ChoiceWriter;
  readonly #toolCalls: ToolCallReader;
  /** Log probabilities that arrived without content; attached to the next content. */
  #logprobs: Logprobs | undefined;
  /** The upstream's finish reason: undefined before the end, empty if it named none. */
  #word: string | undefined;
  #nativeWord = "";
  #spoke = false;
  /** Annotations that arrived before any content. */
  #held: Annotation[] = [];
  /** Signature of the text, written when the text ends: it may arrive before, with or after the text. */
  #signature = "";
  /** The last signature that was written: some servers repeat it with every piece. */
  #written = "";
  /** UTF-16 units of text so far, and of them before the text part in progress: annotations count from the first one. */
  #textLength = 0;
  #textBefore = 0;

  constructor(index: number, budget: PartBudget) {
    this.#writer = new ChoiceWriter(index, budget);
    this.#toolCalls = new ToolCallReader(this.#writer);
  }

  /** Whether the choice has a finish reason. */
  get finished(): boolean {
    return this.#word !== undefined && this.#word !== "";
  }

  /** Whether the choice has ended, with or without a known reason. */
  get ended(): boolean {
    return this.#word !== undefined;
  }

  /** Whether any content was emitted. A signature or an annotation alone does not count. */
  get spoke(): boolean {
    return this.#spoke;
  }

  /** Whether the choice is usable: it has content, or a finish reason that explains why it has none. */
  get meant(): boolean {
    const reason = toFinishReason(this.#word ?? "", { called: this.#toolCalls.called });
    return this.#spoke || reason === FinishReason.LENGTH || reason === FinishReason.CONTENT_FILTER;
  }

  /** Appends the chunks of one entry of `choices`. */
  read(choice: Json, out: CompletionChunk[]): void {
    const start = out.length;
    const message = isObject(choice.delta) ? choice.delta : object(choice.message);
    for (const content of readContents(message)) this.#sayContent(content, out);
    if (array(message.tool_calls).length > 0 || isObject(message.function_call)) this.#settleText(out);
    if (isObject(choice.delta)) this.#toolCalls.readDelta(message, out);
    else this.#toolCalls.readWhole(message, out);
    this.#spoke ||= out.length > start;
    if (this.#spoke) this.#release(out);
    this.#addLogprobs(readLogprobs(choice.logprobs), firstDelta(out, start));
    this.#end(choice);
  }

  /** Appends pending content and the finish. Throws `upstream_protocol` for a call without a name. */
  finish(out: CompletionChunk[]): void {
    this.#release(out);
    this.#sign(out);
    this.#toolCalls.close(out);
    const word = this.#word ?? "";
    const reason = toFinishReason(word, { called: this.#toolCalls.called });
    this.#writer.finish({ reason, native: this.#nativeWord || word }, out);
  }

  #sayContent(content: Content, out: CompletionChunk[]): void {
    switch (content.case) {
      case "signature":
        if (content.value !== this.#written) this.#signature = content.value;
        return;
      case "annotation":
        this.#held.push(content.value);
        return;
      case "image":
        this.#settleText(out);
        return this.#writer.whole(toPart({ case: "image", value: content.value }, content.signature), out);
      case "audio":
        this.#settleText(out);
        return this.#writer.audio(content.value, out);
      case "text":
        if (this.#writer.flowing !== "text") this.#textBefore = this.#textLength;
        this.#textLength += content.value.length;
        return this.#writer.text("text", content.value, out);
      default:
        this.#settleText(out);
        return this.#writer.text(content.case, content.value, out);
    }
  }

  /** Writes what belongs to the text in progress, before another part ends it. */
  #settleText(out: CompletionChunk[]): void {
    if (this.#writer.flowing !== "text") return;
    this.#release(out);
    this.#sign(out);
  }

  #sign(out: CompletionChunk[]): void {
    if (this.#signature === "") return;
    this.#writer.sign("text", this.#signature, out);
    this.#written = this.#signature;
    this.#signature = "";
  }

  #release(out: CompletionChunk[]): void {
    for (const annotation of this.#held) {
      annotation.startIndex = Math.max(0, annotation.startIndex - this.#textBefore);
      annotation.endIndex = Math.max(0, annotation.endIndex - this.#textBefore);
      this.#writer.annotate(annotation, out);
    }
    this.#held = [];
  }

  #addLogprobs(logprobs: Logprobs | undefined, delta: PartDelta | undefined): void {
    const all = this.#logprobs && logprobs ? joinLogprobs(this.#logprobs, logprobs) : (this.#logprobs ?? logprobs);
    this.#logprobs = all;
    if (all === undefined || delta === undefined) return;
    delta.logprobs = all;
    this.#logprobs = undefined;
  }

  /** The first known reason counts: some servers send an empty one with every piece, or a second one at the end. */
  #end({ finish_reason: word, native_finish_reason: native }: Json): void {
    if (typeof word !== "string") return;
    if (this.#word !== undefined && isKnown(this.#word)) return;
    if (word === "" && this.#word !== undefined) return;
    this.#word = word;
    this.#nativeWord = string(native);
  }
}

/** Log probabilities of a choice or of a delta; undefined when there are none. */
export function readLogprobs(value: unknown): Logprobs | undefined {
  const { content, refusal } = object(value);
  const out = { content: readTokens(content), refusal: readTokens(refusal) };
  return out.content.length + out.refusal.length > 0 ? create(LogprobsSchema, out) : undefined;
}

/** Concatenates two lists of log probabilities. */
function joinLogprobs(first: Logprobs, second: Logprobs): Logprobs {
  return create(LogprobsSchema, {
    content: [...first.content, ...second.content],
    refusal: [...first.refusal, ...second.refusal],
  });
}

function readTokens(value: unknown): TokenLogprob[] {
  return array(value).flatMap((entry) => {
    const { token, logprob: given, bytes, top_logprobs: top } = object(entry);
    const logprob = number(given);
    if (typeof token !== "string" || logprob === undefined) return [];
    const utf8 = Array.isArray(bytes) ? { bytes: Uint8Array.from(bytes.map(Number)) } : {};
    return [create(TokenLogprobSchema, { token, logprob, ...utf8, top: readTokens(top) })];
  });
}
