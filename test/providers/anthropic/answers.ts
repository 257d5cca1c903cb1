import { toJson } from "@bufbuild/protobuf";
import { type CompletionChunk, type FinishReason, UsageSchema } from "../../../gen/parley/v1/completion_pb.js";
import { ReasoningBlockSchema } from "../../../gen/parley/v1/message_pb.js";

/** What a list of chunks says of its one choice; what it does not say is absent. */
export interface Said {
  text?: string;
  reasoning?: string;
  refusal?: string;
  blocks?: unknown[];
  /** ID, name and arguments. */
  calls?: [id: string, name: string, args: string][];
  finish?: [reason: FinishReason, native: string];
  usage?: unknown;
}

/** Joins chunks, and checks what must hold of each: calls begin in order, with an ID, and repeat nothing. */
export function summarize(chunks: readonly CompletionChunk[]): Said {
  const said: Said = {};
  for (const { event } of chunks) {
    if (event.case === "finish") said.finish = [event.value.finishReason, event.value.nativeFinishReason];
    else if (event.case === "usage") said.usage = toJson(UsageSchema, event.value, { alwaysEmitImplicit: true });
    else if (event.case === "delta") addDelta(said, event.value.content);
  }
  return said;
}

type Content = Extract<CompletionChunk["event"], { case: "delta" }>["value"]["content"];

function addDelta(said: Said, content: Content): void {
  switch (content.case) {
    case "text":
    case "reasoning":
    case "refusal":
      said[content.case] = (said[content.case] ?? "") + content.value;
      break;
    case "reasoningBlock":
      (said.blocks ??= []).push(toJson(ReasoningBlockSchema, content.value));
      break;
    case "toolCall": {
      const { index, id, name, arguments: more } = content.value;
      const calls = (said.calls ??= []);
      if (id !== "" && index === calls.length) calls.push([id, name, more]);
      else if (id !== "" || name !== "" || calls[index] === undefined)
        throw new Error(`call ${index} begins out of order`);
      else calls[index][2] += more;
      break;
    }
    default:
      throw new Error(`unexpected content: ${content.case}`);
  }
}
