import { create } from "@bufbuild/protobuf";
import {
  type CompletionChunk,
  type Delta,
  FinishReason,
  ToolCallDeltaSchema,
} from "../../gen/parley/v1/completion_pb.js";
import type { Message } from "../../gen/parley/v1/message_pb.js";
import { deltaChunk, finishChunk, usageChunk } from "../../src/core/chunks.ts";
import type { Answer } from "../../src/core/provider.ts";

/** The same answer as chunks: what a stream of it would have said, in as few pieces as possible. */
export function toChunks({ choices, usage }: Answer): CompletionChunk[] {
  const out: CompletionChunk[] = [];
  for (const choice of choices) {
    const { index, message, logprobs } = choice;
    const say = (content: Delta["content"]): void => void out.push(deltaChunk(index, content));
    if (message !== undefined) sayMessage(message, say);
    const first = out.find((chunk) => chunk.event.case === "delta" && chunk.event.value.choiceIndex === index);
    if (logprobs !== undefined && first?.event.case === "delta") first.event.value.logprobs = logprobs;
    out.push(
      finishChunk(
        index,
        choice.finishReason === FinishReason.UNSPECIFIED ? FinishReason.STOP : choice.finishReason,
        choice.nativeFinishReason,
      ),
    );
  }
  if (usage !== undefined) out.push(usageChunk(usage));
  return out;
}

function sayMessage(message: Message, say: (content: Delta["content"]) => void): void {
  for (const block of message.reasoning) {
    if (block.text !== "") say({ case: "reasoning", value: block.text });
    if (block.signature !== "" || block.redacted !== "") say({ case: "reasoningBlock", value: block });
  }
  for (const { content } of message.content) {
    if (content.case === "text" && content.value !== "") say({ case: "text", value: content.value });
    else if (content.case === "image" || content.case === "audio") say(content);
  }
  if (message.refusal !== undefined && message.refusal !== "") say({ case: "refusal", value: message.refusal });
  message.toolCalls.forEach(({ id, name, arguments: text, signature, custom }, index) => {
    say({
      case: "toolCall",
      value: create(ToolCallDeltaSchema, { index, id, name, arguments: text, signature, custom }),
    });
  });
  if (message.signature !== undefined) say({ case: "signature", value: message.signature });
  for (const annotation of message.annotations) say({ case: "annotation", value: annotation });
}
