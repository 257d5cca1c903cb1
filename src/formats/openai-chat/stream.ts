import type {
  ChoiceFinish,
  CompletionChunk,
  CompletionStart,
  PartDelta,
  PartFinish,
  PartStart,
} from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { countCodePoints } from "../../encoding/code-points.ts";
import { writeLogprobs } from "../logprobs.ts";
import { toErrorEvent } from "../openai-error.ts";
import { LeftOut } from "../left-out.ts";
import { readFurther } from "../native.ts";
import { writeReport } from "../report.ts";
import * as write from "./answer.ts";
import { DIALECT } from "./answer.ts";
import type { Failure } from "../../core/failure.ts";
import { type AnswerStream, EVENT_STREAM, type NameOf } from "../format.ts";

const DONE = "data: [DONE]\n\n";

/**
 * Writes chunks as OpenAI's `chat.completion.chunk` events. One writer per stream: it sends the role once per choice, numbers
 * the images, holds reasoning blocks and the signature of texts until the finish, and the finish until the report.
 */
export class ChunkWriter implements AnswerStream {
  readonly contentType = EVENT_STREAM;
  /** A comment, because official clients throw on an empty `data:` line. */
  readonly keepAlive = ": keep-alive\n\n";
  readonly #includeUsage: boolean;
  readonly #nameOf: NameOf;
  #head = "";
  #tail = "";
  readonly #choices = new Map<number, ChoiceState>();
  readonly #finishes: ChoiceFinish[] = [];
  readonly #leftOut = new LeftOut(DIALECT);
  #usage: Usage | undefined;
  #ended = false;

  /** Whether the end of the stream was written. */
  get ended(): boolean {
    return this.#ended;
  }

  /** `nameOf`: the caller's names of request fields. */
  constructor({ includeUsage, nameOf }: { readonly includeUsage: boolean; readonly nameOf: NameOf }) {
    this.#includeUsage = includeUsage;
    this.#nameOf = nameOf;
  }

  /** Converts chunks into events, as text; empty when nothing can be sent yet. */
  write(chunks: readonly CompletionChunk[]): string {
    let out = "";
    for (const chunk of chunks) {
      const { event } = chunk;
      this.#leftOut.addChunk(chunk);
      if (event.case === "partDelta") out += this.#delta(event.value);
      else if (event.case === "partStart") out += this.#startPart(event.value);
      else if (event.case === "partFinish") out += this.#finishPart(event.value);
      else if (event.case === "start") this.#start(event.value);
      else if (event.case === "choiceFinish") this.#finishes.push(event.value);
      else if (event.case === "usage") this.#usage = event.value;
      else if (event.case === "report") out += this.end(event.value);
    }
    return out;
  }

  fail(failure: Failure): string {
    return toErrorEvent(failure);
  }

  #start({ id, createTime, model }: CompletionStart): void {
    const created = createTime?.seconds ?? 0n;
    this.#head = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"choices":[`;
    this.#tail = this.#includeUsage ? `],"usage":null}\n\n` : "]}\n\n";
  }

  #startPart({ choiceIndex, partIndex, part }: PartStart): string {
    if (part === undefined) return "";
    const choice = this.#choice(choiceIndex);
    const fields = beginPart(part, partIndex, choice);
    return fields === undefined ? "" : this.#piece(choice, fields);
  }

  #delta({ choiceIndex, partIndex, content, logprobs }: PartDelta): string {
    const choice = this.#choice(choiceIndex);
    // Skip empty text, unless it has log probabilities.
    const fields = content.value === "" && logprobs.length === 0 ? undefined : deltaFields(content, partIndex, choice);
    if (fields === undefined) return this.#role(choice);
    if (logprobs.length === 0) return this.#piece(choice, fields);
    const list = content.case === "refusal" ? { content: [], refusal: logprobs } : { content: logprobs, refusal: [] };
    return this.#piece(choice, fields, JSON.stringify(writeLogprobs(list)));
  }

  #finishPart({ choiceIndex, partIndex, signature, providerDetailsJson }: PartFinish): string {
    const choice = this.#choice(choiceIndex);
    const call = choice.calls.get(partIndex);
    if (call !== undefined) {
      const rest = restOf(call, signature, providerDetailsJson);
      return rest === undefined ? "" : this.#piece(choice, JSON.stringify({ tool_calls: [rest] }));
    }
    if (signature === "") return "";
    const reasoning = choice.reasoning.get(partIndex);
    if (reasoning === undefined) choice.textSignatures.push(signature);
    else reasoning.signature = signature;
    return "";
  }

  /** A chunk with one delta, after the role. */
  #piece(choice: ChoiceState, fields: string, logprobs = "null"): string {
    return (
      this.#role(choice) +
      this.#chunk(`{"index":${choice.index},"delta":${fields},"logprobs":${logprobs},"finish_reason":null}`)
    );
  }

  /** Sends the role once, with the first content: some clients concatenate repeated roles. */
  #role(choice: ChoiceState): string {
    if (choice.begun) return "";
    choice.begun = true;
    return this.#chunk(
      `{"index":${choice.index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`,
    );
  }

  /** The end of the stream; without a report, it has no `parley` fields. */
  end(report?: Report): string {
    let out = "";
    const leftOut = this.#leftOut.names;
    const routing =
      report === undefined ? "" : `,"parley":${JSON.stringify(writeReport(report, this.#nameOf, leftOut))}`;
    for (const { choiceIndex: index, finishReason, nativeFinishReason, providerDetailsJson } of this.#finishes) {
      const further = (place?: string): string => fieldsOf(providerDetailsJson, place);
      const choice = this.#choice(index);
      out += this.#role(choice);
      const signature = write.textSignature(choice.textSignatures, choice.images > 0);
      if (signature !== "")
        out += this.#piece(choice, JSON.stringify({ extra_content: write.thoughtSignature(signature) }));
      const blocks = [...choice.reasoning.values()].filter((one) => one.signature !== "" || one.redacted !== "");
      if (blocks.length > 0)
        out += this.#piece(choice, JSON.stringify({ thinking_blocks: blocks.map(write.thinkingBlock) }));
      const native = report === undefined ? "" : `,"native_finish_reason":${JSON.stringify(nativeFinishReason)}`;
      const reason = `"finish_reason":"${write.finishReason(finishReason)}"${native}`;
      const finish = `"delta":{${further("message").slice(1)}},"logprobs":null,${reason}${further("choices")}`;
      out += `${this.#head}{"index":${index},${finish}}]${further()}${routing}${this.#tail.slice(1)}`;
    }
    if (this.#includeUsage && this.#usage !== undefined) {
      out += `${this.#head}],"usage":${JSON.stringify(write.usage(this.#usage))}}\n\n`;
    }
    this.#ended = true;
    return out + DONE;
  }

  #chunk(choice: string): string {
    return this.#head + choice + this.#tail;
  }

  #choice(index: number): ChoiceState {
    let choice = this.#choices.get(index);
    if (choice === undefined) this.#choices.set(index, (choice = newChoice(index)));
    return choice;
  }
}

/** Fields that only the provider's dialect has, as JSON text with a comma before each. */
function fieldsOf(details: ChoiceFinish["providerDetailsJson"], place?: string): string {
  const fields = JSON.stringify(readFurther(details, { dialect: DIALECT, ...(place !== undefined && { place }) }));
  return fields === "{}" ? "" : `,${fields.slice(1, -1)}`;
}

interface ChoiceState {
  readonly index: number;
  begun: boolean;
  images: number;
  /** UTF-16 units of text so far. */
  textLength: number;
  /** Code points of all texts so far, and of the texts before the last text part. Only citations need them. */
  codePoints: number;
  codePointsBefore: number;
  /** Reasoning by part index. */
  readonly reasoning: Map<number, { -readonly [K in keyof write.PlacedReasoning]: write.PlacedReasoning[K] }>;
  readonly calls: Map<number, CallState>;
  readonly textSignatures: string[];
}

interface CallState {
  /** Number of the call among those of the choice. */
  readonly index: number;
  readonly custom: boolean;
}

function newChoice(index: number): ChoiceState {
  return {
    index,
    begun: false,
    images: 0,
    textLength: 0,
    codePoints: 0,
    codePointsBefore: 0,
    reasoning: new Map(),
    calls: new Map(),
    textSignatures: [],
  };
}

/** The `delta` object of a part's start as JSON text; undefined for a part that starts empty, or is sent later. */
function beginPart(
  { kind, signature, providerDetailsJson }: Part,
  partIndex: number,
  choice: ChoiceState,
): string | undefined {
  switch (kind.case) {
    case "text":
      choice.codePointsBefore = choice.codePoints;
      return undefined;
    case "reasoning": {
      const place = { textOffset: choice.textLength, callOffset: choice.calls.size };
      choice.reasoning.set(partIndex, { ...kind.value, signature, ...place });
      return undefined;
    }
    case "image":
      return JSON.stringify({ images: [{ index: choice.images++, ...write.imagePart(kind.value, signature) }] });
    case "toolCall": {
      const { id, name, input } = kind.value;
      const custom = input.case === "customInput";
      const call = { index: choice.calls.size, custom };
      choice.calls.set(partIndex, call);
      const extra = signature === "" ? {} : { extra_content: write.thoughtSignature(signature) };
      const { ofCall, ofFunction, ofCustom } = write.furtherOfCall(providerDetailsJson);
      const begun = custom
        ? { ...ofCall, index: call.index, id, type: "custom", custom: { ...ofCustom, name, input: "" } }
        : {
            ...ofCall,
            index: call.index,
            id,
            type: "function",
            function: { ...ofFunction, name, arguments: "" },
            ...extra,
          };
      return JSON.stringify({ tool_calls: [begun] });
    }
    default:
      return undefined;
  }
}

/** The `delta` object as JSON text; undefined for content that has no place in the format. */
function deltaFields(content: PartDelta["content"], partIndex: number, choice: ChoiceState): string | undefined {
  switch (content.case) {
    case "text":
      choice.textLength += content.value.length;
      choice.codePoints += countCodePoints(content.value);
      return `{"content":${JSON.stringify(content.value)}}`;
    case "reasoning": {
      const reasoning = choice.reasoning.get(partIndex);
      if (reasoning !== undefined) reasoning.text += content.value;
      return `{"reasoning_content":${JSON.stringify(content.value)}}`;
    }
    case "refusal":
      return `{"refusal":${JSON.stringify(content.value)}}`;
    case "argumentsJson":
    case "customInput": {
      const call = choice.calls.get(partIndex);
      return call && JSON.stringify({ tool_calls: [moreOf(call, content.value)] });
    }
    case "audio":
      return JSON.stringify({ audio: write.audio(content.value) });
    case "citation": {
      const { codePointsBefore: before } = choice;
      const annotations = write.annotations([content.value], { before, length: choice.codePoints - before });
      return annotations.length === 0 ? undefined : JSON.stringify({ annotations });
    }
    // The format has no place for native blocks. Images are whole here; their pieces are only between processes.
    case "nativeJson":
    case "nativeEvent":
    case "imageData":
    case undefined:
      return undefined;
  }
}

/** More arguments. ID, type and name are only in the first piece of a call: clients concatenate repeated fields. */
function moreOf({ index, custom }: CallState, text: string): object {
  return custom ? { index, custom: { input: text } } : { index, function: { arguments: text } };
}

/** The fields that are known only at the end of a call; undefined without any. */
function restOf(
  { index, custom }: CallState,
  signature: string,
  details: PartFinish["providerDetailsJson"],
): object | undefined {
  const { ofCall, ofFunction, ofCustom } = write.furtherOfCall(details);
  const isNothing = [ofCall, ofFunction, ofCustom].every((fields) => Object.keys(fields).length === 0);
  if (isNothing && signature === "") return undefined;
  return {
    ...ofCall,
    index,
    ...(custom ? { custom: { ...ofCustom, input: "" } } : { function: { ...ofFunction, arguments: "" } }),
    ...(signature !== "" && { extra_content: write.thoughtSignature(signature) }),
  };
}
