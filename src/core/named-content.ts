import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";

/**
 * Whether the request names content that a provider looks up or interprets by itself: addresses, IDs of files and recordings, native
 * parts and tools. A refusal may then be about that content, and says nothing about the model.
 */
export function namesContent({ messages, tools }: Pick<CompletionRequest, "messages" | "tools">): boolean {
  return tools.some(({ kind }) => kind.case === "native") || messages.some(({ parts }) => parts.some(isName));
}

function isName({ kind }: Part): boolean {
  switch (kind.case) {
    case "native":
      return true;
    case "image":
    case "video":
    case "file":
      return kind.value.source.case !== "data";
    case "audio":
      return kind.value.source.case !== "data" || kind.value.id !== "";
    case "toolResult":
      return kind.value.parts.some(isName);
    default:
      return false;
  }
}
