import { create } from "@bufbuild/protobuf";
import {
  type CompletionChunk,
  type Delta,
  FinishReason,
  type Logprobs,
  LogprobsSchema,
  type TokenLogprob,
  TokenLogprobSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk, finishChunk } from "../../core/chunks.ts";
import { array, isObject, type Json, number, object, string } from "../wire/json.ts";
import { readContents } from "./answer-content.ts";
import { isKnown, toFinishReason } from "./finish-reason.ts";
import { ToolCallReader } from "./tool-call-reader.ts";

/** Reads one choice of a whole answer or a stream. */
export class ChoiceReader {
  readonly #index: number;
  readonly #toolCalls: ToolCallReader;
  /** Log probabilities that arrived without content; attached to the next content. */
  #logprobs: Logprobs | undefined;
  /** The upstream's finish reason: undefined before the end, empty if it named none. */
  #word: string | undefined;
  #nativeWord = "";
  #spoke = false;
  /** Signatures and annotations that arrived before any content. */
  #held: Delta["content"][] = [];

  constructor(index: number) {
    this.#index = index;
    this.#toolCalls = new ToolCallReader(index);
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
    if (isObject(choice.delta)) {
      this.#say(choice.delta, out);
      this.#toolCalls.readDelta(choice.delta, out);
    } else {
      const message = object(choice.message);
      this.#say(message, out);
      this.#toolCalls.readWhole(message, out);
    }
    this.#spoke ||= out.length > start;
    if (this.#spoke) this.#release(out);
    this.#addLogprobs(readLogprobs(choice.logprobs), out[start]);
    this.#end(choice);
  }

  /** Appends pending content and the finish. Throws `upstream_protocol` for a call without a name. */
  finish(out: CompletionChunk[]): void {
    this.#release(out);
    this.#toolCalls.close(out);
    const word = this.#word ?? "";
    const reason = toFinishReason(word, { called: this.#toolCalls.called });
    out.push(finishChunk(this.#index, reason, this.#nativeWord || word));
  }

  #say(message: Json, out: CompletionChunk[]): void {
    for (const content of readContents(message)) {
      if (content.case === "signature" || content.case === "annotation") this.#held.push(content);
      else out.push(deltaChunk(this.#index, content));
    }
  }

  #release(out: CompletionChunk[]): void {
    for (const content of this.#held) out.push(deltaChunk(this.#index, content));
    this.#held = [];
  }

  #addLogprobs(logprobs: Logprobs | undefined, chunk: CompletionChunk | undefined): void {
    const all = this.#logprobs && logprobs ? joinLogprobs(this.#logprobs, logprobs) : (this.#logprobs ?? logprobs);
    this.#logprobs = all;
    if (all === undefined || chunk?.event.case !== "delta") return;
    chunk.event.value.logprobs = all;
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
