import type {
  ChoiceFinish,
  CompletionChunk,
  CompletionStart,
  Delta,
  ToolCallDelta,
  Usage,
} from "../../../gen/parley/v1/completion_pb.js";
import type { ReasoningBlock } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import * as write from "./answer.ts";

/** Comment that keeps proxies from closing a silent stream. Not an empty `data:` line, on which official clients throw. */
export const KEEP_ALIVE = ": keep-alive\n\n";

const DONE = "data: [DONE]\n\n";

/**
 * Writes chunks as OpenAI's `chat.completion.chunk` events. One writer per stream: it sends the role once per choice, numbers
 * the images, holds reasoning blocks until the finish, and the finish until the report.
 */
export class ChunkWriter {
  readonly #includeUsage: boolean;
  #head = "";
  #tail = "";
  readonly #choices = new Map<number, ChoiceState>();
  readonly #finishes: ChoiceFinish[] = [];
  #usage: Usage | undefined;
  #ended = false;

  /** Whether the end of the stream was written. */
  get ended(): boolean {
    return this.#ended;
  }

  constructor({ includeUsage }: { readonly includeUsage: boolean }) {
    this.#includeUsage = includeUsage;
  }

  /** Converts chunks into events, as text; empty when nothing can be sent yet. */
  write(chunks: readonly CompletionChunk[]): string {
    let out = "";
    for (const { event } of chunks) {
      if (event.case === "delta") out += this.#delta(event.value);
      else if (event.case === "start") this.#start(event.value);
      else if (event.case === "finish") this.#finishes.push(event.value);
      else if (event.case === "usage") this.#usage = event.value;
      else if (event.case === "report") out += this.#end(event.value);
    }
    return out;
  }

  #start({ id, created, model }: CompletionStart): void {
    this.#head = `data: {"id":${JSON.stringify(id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(model)},"choices":[`;
    this.#tail = this.#includeUsage ? `],"usage":null}\n\n` : "]}\n\n";
  }

  #delta({ choiceIndex, content, logprobs }: Delta): string {
    const choice = this.#choice(choiceIndex);
    // Skip empty text, unless it has log probabilities.
    const fields = content.value === "" && logprobs === undefined ? undefined : deltaFields(content, choice);
    const role = this.#role(choiceIndex, choice);
    if (fields === undefined) return role;
    const probabilities = logprobs === undefined ? "null" : JSON.stringify(write.logprobs(logprobs));
    return (
      role + this.#chunk(`{"index":${choiceIndex},"delta":${fields},"logprobs":${probabilities},"finish_reason":null}`)
    );
  }

  /** Sends the role once, with the first content: some clients concatenate repeated roles. */
  #role(index: number, choice: ChoiceState): string {
    if (choice.begun) return "";
    choice.begun = true;
    return this.#chunk(
      `{"index":${index},"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`,
    );
  }

  #end(report: Report): string {
    let out = "";
    const routing = JSON.stringify(write.parley(report));
    for (const { choiceIndex: index, finishReason, nativeFinishReason } of this.#finishes) {
      const choice = this.#choice(index);
      out += this.#role(index, choice);
      if (choice.blocks.length > 0) {
        const blocks = JSON.stringify({ thinking_blocks: choice.blocks.map(write.thinkingBlock) });
        out += this.#chunk(`{"index":${index},"delta":${blocks},"logprobs":null,"finish_reason":null}`);
      }
      const reason = `"finish_reason":"${write.finishReason(finishReason)}","native_finish_reason":${JSON.stringify(nativeFinishReason)}`;
      out += `${this.#head}{"index":${index},"delta":{},"logprobs":null,${reason}}],"parley":${routing}${this.#tail.slice(1)}`;
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
    if (choice === undefined)
      this.#choices.set(index, (choice = { begun: false, images: 0, blocks: [], customCalls: new Set() }));
    return choice;
  }
}

interface ChoiceState {
  begun: boolean;
  images: number;
  readonly blocks: ReasoningBlock[];
  /** Indexes of custom tool calls: only their first piece has the type. */
  readonly customCalls: Set<number>;
}

/** The `delta` object as JSON text; undefined for content that is sent later. */
function deltaFields(content: Delta["content"], choice: ChoiceState): string | undefined {
  switch (content.case) {
    case "text":
      return `{"content":${JSON.stringify(content.value)}}`;
    case "reasoning":
      return `{"reasoning_content":${JSON.stringify(content.value)}}`;
    case "refusal":
      return `{"refusal":${JSON.stringify(content.value)}}`;
    case "toolCall":
      return JSON.stringify({ tool_calls: [toolCall(content.value, choice)] });
    case "image":
      return JSON.stringify({ images: [{ index: choice.images++, ...write.imagePart(content.value) }] });
    case "audio":
      return JSON.stringify({ audio: write.audio(content.value) });
    case "signature":
      return JSON.stringify({ extra_content: write.thoughtSignature(content.value) });
    case "annotation":
      return JSON.stringify({ annotations: [write.annotation(content.value)] });
    case "reasoningBlock":
      choice.blocks.push(content.value);
      return undefined;
    case undefined:
      return undefined;
  }
}

/** The first piece of a call has id, type and name; later ones only arguments: clients concatenate repeated fields. */
function toolCall(
  { index, id, name, arguments: text, signature, custom }: ToolCallDelta,
  { customCalls }: ChoiceState,
): object {
  if (custom) customCalls.add(index);
  const signed = signature !== "" && { extra_content: write.thoughtSignature(signature) };
  if (id === "")
    return customCalls.has(index)
      ? { index, custom: { input: text } }
      : { index, function: { arguments: text }, ...signed };
  if (custom) return { index, id, type: "custom", custom: { name, input: text } };
  return { index, id, type: "function", function: { name, arguments: text }, ...signed };
}
