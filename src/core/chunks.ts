import { clone, create } from "@bufbuild/protobuf";
import {
  type Choice,
  type CompletionChunk,
  type Delta,
  FinishReason,
  type Logprobs,
  LogprobsSchema,
  type ToolCallDelta,
  type Usage,
} from "../../gen/parley/v1/completion_pb.js";
import {
  AudioSchema,
  type ContentPart,
  type Message,
  ReasoningBlockSchema,
  Role,
  ToolCallSchema,
} from "../../gen/parley/v1/message_pb.js";
import type { Answer } from "./provider.ts";

/*
 * Plain objects of the shape that `create` returns. An answer has thousands of chunks, and `create` iterates over all fields
 * of a message. The compiler reports a missing field.
 */

/** A chunk that adds `content` to a choice. */
export function deltaChunk(choiceIndex: number, content: Delta["content"]): CompletionChunk {
  return toChunk({ case: "delta", value: { $typeName: "parley.v1.Delta", choiceIndex, content } });
}

/** Provider's word for the end of a choice. Anything else is not passed on: it could be a credential or a text. */
const NATIVE_REASON = /^[A-Za-z_]{1,64}$/;

/** A chunk that ends a choice. `native`: the provider's word for it; empty for anything that is not a word. */
export function finishChunk(choiceIndex: number, finishReason: FinishReason, native: string): CompletionChunk {
  const nativeFinishReason = NATIVE_REASON.test(native) ? native : "";
  const value = { $typeName: "parley.v1.ChoiceFinish", choiceIndex, finishReason, nativeFinishReason } as const;
  return toChunk({ case: "finish", value });
}

/** A chunk with the provider's token counts. */
export function usageChunk(usage: Usage): CompletionChunk {
  return toChunk({ case: "usage", value: usage });
}

function toChunk(event: CompletionChunk["event"]): CompletionChunk {
  return { $typeName: "parley.v1.CompletionChunk", event };
}

/** Joins the chunks of a stream into the whole answer. Does not change the chunks. */
export class AnswerBuilder {
  readonly #choices = new Map<number, Choice>();
  #usage: Usage | undefined;

  /** Adds one chunk; `start` and `report` are not part of the answer and ignored. */
  add(chunk: CompletionChunk): void {
    const { event } = chunk;
    if (event.case === "delta") this.#addDelta(event.value);
    else if (event.case === "finish") {
      const choice = this.#choice(event.value.choiceIndex);
      choice.finishReason = event.value.finishReason;
      choice.nativeFinishReason = event.value.nativeFinishReason;
    } else if (event.case === "usage") this.#usage = event.value;
  }

  /** The answer so far: choices by index. */
  build(): Answer {
    const choices = [...this.#choices.values()].toSorted((a, b) => a.index - b.index);
    return { choices, usage: this.#usage };
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = newChoice(index);
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #addDelta({ choiceIndex, content, logprobs }: Delta): void {
    const choice = this.#choice(choiceIndex);
    addContent(choice.message!, content);
    if (logprobs !== undefined) choice.logprobs = joinLogprobs(choice.logprobs, logprobs);
  }
}

// Plain objects of the shape that `create` returns, at a fraction of its cost: every answer has them.

function newChoice(index: number): Choice {
  const message: Message = {
    $typeName: "parley.v1.Message",
    role: Role.ASSISTANT,
    content: [],
    toolCalls: [],
    reasoning: [],
    annotations: [],
  };
  return {
    $typeName: "parley.v1.Choice",
    index,
    message,
    finishReason: FinishReason.UNSPECIFIED,
    nativeFinishReason: "",
  };
}

function toPart(content: ContentPart["content"]): ContentPart {
  return { $typeName: "parley.v1.ContentPart", content };
}

function addContent(message: Message, content: Delta["content"]): void {
  switch (content.case) {
    case "text": {
      const last = message.content.at(-1)?.content;
      if (last?.case === "text") last.value += content.value;
      else message.content.push(toPart({ case: "text", value: content.value }));
      break;
    }
    case "image":
      message.content.push(toPart({ case: "image", value: content.value }));
      break;
    case "audio": {
      const last = message.content.at(-1)?.content;
      if (last?.case === "audio") {
        last.value.data = Buffer.concat([last.value.data, content.value.data]);
        last.value.transcript += content.value.transcript;
        last.value.id ||= content.value.id;
        if (content.value.expiresAt !== undefined) last.value.expiresAt = content.value.expiresAt;
      } else {
        const value = clone(AudioSchema, content.value);
        message.content.push(toPart({ case: "audio", value }));
      }
      break;
    }
    case "reasoning": {
      const last = message.reasoning.at(-1);
      if (last !== undefined && last.signature === "" && last.redacted === "") last.text += content.value;
      else message.reasoning.push(create(ReasoningBlockSchema, { text: content.value }));
      break;
    }
    case "reasoningBlock": {
      // The block repeats the text that was streamed as `reasoning` since the previous block.
      const last = message.reasoning.at(-1);
      if (last !== undefined && last.signature === "" && last.redacted === "") message.reasoning.pop();
      message.reasoning.push(clone(ReasoningBlockSchema, content.value));
      break;
    }
    case "refusal":
      message.refusal = (message.refusal ?? "") + content.value;
      break;
    case "toolCall":
      addToolCall(message, content.value);
      break;
    case "signature":
      message.signature = content.value;
      break;
    case "annotation":
      message.annotations.push(content.value);
      break;
    case undefined:
      break;
  }
}

function addToolCall(message: Message, delta: ToolCallDelta): void {
  const call = (message.toolCalls[delta.index] ??= create(ToolCallSchema));
  call.id ||= delta.id;
  call.name ||= delta.name;
  call.arguments += delta.arguments;
  call.signature ||= delta.signature;
  call.custom ||= delta.custom;
}

/** Appends in place: a copy per chunk would be quadratic in the length of the answer. */
function joinLogprobs(gathered: Logprobs | undefined, { content, refusal }: Logprobs): Logprobs {
  const joined = gathered ?? create(LogprobsSchema);
  for (const token of content) joined.content.push(token);
  for (const token of refusal) joined.refusal.push(token);
  return joined;
}
