import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Citation, TokenLogprob } from "../../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, MAX_CITATIONS, toPart } from "../../core/chunks.ts";
import { type PartBudget } from "../../core/part-budget.ts";
import { countCodePoints } from "../../encoding/code-points.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { array, isObject, type Json, object, string } from "../wire/json.ts";
import { readTokens, toTextRange } from "../wire/openai-content.ts";
import type { Redact } from "../wire/redaction.ts";
import { type Content, readContents } from "./answer-content.ts";
import { isKnown, toFinishReason } from "./finish-reason.ts";
import { ToolCallReader } from "./tool-call-reader.ts";

/** Fields that are read, or have a counterpart in the contract. */
const OF_CHOICE: ReadonlySet<string> = new Set([
  "index",
  "message",
  "delta",
  "finish_reason",
  "native_finish_reason",
  "logprobs",
]);
const OF_MESSAGE: ReadonlySet<string> = new Set([
  "role",
  "content",
  "refusal",
  "reasoning",
  "reasoning_content",
  "reasoning_details",
  "tool_calls",
  "function_call",
  "annotations",
  "audio",
  "images",
  "extra_content",
  "thinking_blocks",
]);

/** Details of the answer beside its choices, and the redaction of the provider's credentials. */
interface AnswerDetails {
  readonly details: Readonly<Record<string, string>>;
  readonly redact: Redact;
}

/** Reads one choice of a whole answer or a stream. */
export class ChoiceReader {
  /** The field with the content, for an entry that has both. */
  readonly #form: "delta" | "message";
  readonly #writer: ChoiceWriter;
  readonly #toolCalls: ToolCallReader;
  /** Log probabilities of text and of refusals whose content has not arrived. */
  readonly #logprobs: Record<"content" | "refusal", TokenLogprob[]> = { content: [], refusal: [] };
  /** The upstream's finish reason: undefined before the end, empty if it named none. */
  #word: string | undefined;
  readonly #budget: PartBudget;
  readonly #further: FurtherFields;
  readonly #ofMessage: FurtherFields;
  #nativeWord = "";
  #spoke = false;
  /** Citations that arrived before any content. */
  #held: Citation[] = [];
  /** Signature of the text, written when the text ends: it may arrive before, with or after the text. */
  #signature = "";
  /** The last signature that was written: some servers repeat it with every piece. */
  #written = "";
  /** Code points of all text so far, and before the text part in progress. Ranges of citations count from the first one. */
  #textLength = 0;
  #textBefore = 0;

  constructor(index: number, budget: PartBudget, form: "delta" | "message") {
    this.#form = form;
    this.#budget = budget;
    this.#further = new FurtherFields("openai.choices.", OF_CHOICE, budget);
    this.#ofMessage = new FurtherFields("openai.message.", OF_MESSAGE, budget);
    this.#writer = new ChoiceWriter(index, budget);
    this.#toolCalls = new ToolCallReader(this.#writer, budget);
  }

  /** Whether the choice has a finish reason. */
  get finished(): boolean {
    return this.#word !== undefined && this.#word !== "";
  }

  /** Whether the choice has ended, with or without a known reason. */
  get ended(): boolean {
    return this.#word !== undefined;
  }

  /** Whether any content was emitted. A signature or a citation alone does not count. */
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
    if (isObject(choice.logprobs)) this.#addLogprobs(choice.logprobs);
    const other = this.#form === "delta" ? "message" : "delta";
    const form = isObject(choice[this.#form]) ? this.#form : other;
    const message = object(choice[form]);
    this.#further.add(choice);
    this.#ofMessage.addPiece(message);
    for (const content of readContents(message)) this.#sayContent(content, out);
    if (array(message.tool_calls).length > 0 || isObject(message.function_call)) this.#settleText(out);
    if (form === "delta") this.#toolCalls.readDelta(message, out);
    else this.#toolCalls.readWhole(message, out);
    this.#spoke ||= out.length > start;
    if (this.#spoke) this.#release(out);
    // The contract has no log probabilities for other content.
    if (out.length > start) {
      this.#takeLogprobs("content");
      this.#takeLogprobs("refusal");
    }
    this.#end(choice);
  }

  /** Appends pending content and the finish. Throws `upstream_protocol` for a call without a name. */
  finish({ details, redact }: AnswerDetails, out: CompletionChunk[]): void {
    this.#release(out);
    this.#sign(out);
    this.#toolCalls.close(redact, out);
    const word = this.#word ?? "";
    const reason = toFinishReason(word, { called: this.#toolCalls.called });
    const further = { ...details, ...this.#further.read(redact), ...this.#ofMessage.read(redact) };
    this.#writer.finish({ reason, native: this.#nativeWord || word, details: further }, out);
  }

  #sayContent(content: Content, out: CompletionChunk[]): void {
    switch (content.case) {
      case "signature":
        if (content.value !== this.#written) this.#signature = content.value;
        return;
      case "citation":
        if (this.#held.length < MAX_CITATIONS) this.#held.push(content.value);
        return;
      case "image":
        this.#settleText(out);
        return this.#writer.whole(toPart({ case: "image", value: content.value }, content.signature), out);
      case "audio":
        this.#settleText(out);
        return this.#writer.audio(content.value, out);
      case "text":
        if (this.#writer.flowing !== "text") this.#textBefore = this.#textLength;
        this.#textLength += countCodePoints(content.value);
        return this.#writer.text(content, out, this.#takeLogprobs("content"));
      case "refusal":
        this.#settleText(out);
        return this.#writer.text(content, out, this.#takeLogprobs("refusal"));
      default:
        this.#settleText(out);
        return this.#writer.text(content, out);
    }
  }

  /** Writes the signature and details of the text in progress, before another part ends it. */
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
    for (const citation of this.#held) this.#writer.cite(this.#toPlace(citation), out);
    this.#held = [];
  }

  /** The citation with its range relative to the start of the text part in progress. */
  #toPlace({ textRange, ...citation }: Citation): Citation {
    if (textRange === undefined) return citation;
    const start = Math.max(0, textRange.start - this.#textBefore);
    const range = toTextRange(start, textRange.end - this.#textBefore);
    return range === undefined ? citation : { ...citation, textRange: range };
  }

  #addLogprobs({ content, refusal }: Json): void {
    this.#keepLogprobs("content", content);
    this.#keepLogprobs("refusal", refusal);
  }

  /** Keeps log probabilities until their content arrives. Those beyond the budget are left out. */
  #keepLogprobs(of: "content" | "refusal", given: unknown): void {
    const kept = this.#logprobs[of];
    for (const token of readTokens(given)) if (this.#budget.holdLogprobs(countLogprobs(token))) kept.push(token);
  }

  /** Removes and returns the log probabilities of the current content; undefined without any. */
  #takeLogprobs(of: "content" | "refusal"): TokenLogprob[] | undefined {
    const tokens = this.#logprobs[of];
    if (tokens.length === 0) return undefined;
    this.#logprobs[of] = [];
    for (const token of tokens) this.#budget.holdLogprobs(-countLogprobs(token));
    return tokens;
  }

  /** Notes the finish reason. The first known one counts: some servers send an empty one with every piece, or another one at the end. */
  #end({ finish_reason: word, native_finish_reason: native }: Json): void {
    if (typeof word !== "string") return;
    if (this.#word !== undefined && isKnown(this.#word)) return;
    if (word === "" && this.#word !== undefined) return;
    this.#word = word;
    this.#nativeWord = string(native);
  }
}

const countLogprobs = ({ top }: TokenLogprob): number => 1 + top.length;
