import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { type Conversation, isBlank, toConversation, toInput } from "../wire/block-turns.ts";
import { isResponsesState } from "../wire/responses-state.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { toContentBlocks, toImageBlock, toNativeBlock, toTextBlocks } from "./parts.ts";
import { KINDS, settleSystemTurns } from "./turns.ts";
import type { Block, ContentBlock, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolResultBlock } from "./wire.ts";

/**
 * Converts a request's messages to a system prompt and turns. A system message after the first turn stays in position if the model
 * allows it, joins the user's turn if moving it would invalidate replayed reasoning, and is added to the prompt otherwise.
 */
export function toMessages(context: TranslationContext): Conversation<Block, TextBlock> {
  return toConversation<Block, TextBlock>(context, {
    ...KINDS,
    toText: (parts) => toTextBlocks(context, parts),
    toUser: (parts) => toContentBlocks(context, parts),
    toAssistant: (part) => toAssistantBlock(context, part),
    toReasoning: toThinkingBlock,
    toImage: (image) => toImageBlock(context, image),
    toResult: (callId, { parts, isError }) => {
      const content = toResultContent(toContentBlocks(context, parts));
      return { type: "tool_result", tool_use_id: callId, content, is_error: isError || undefined };
    },
    settle: (turns) => settleSystemTurns(turns, context.model.capabilities),
  });
}

function toAssistantBlock(context: TranslationContext, { kind }: Part): Block | undefined {
  const { place } = context;
  switch (kind.case) {
    case "text":
    case "refusal":
      return isBlank(kind.value) ? undefined : { type: "text", text: kind.value };
    case "toolCall": {
      const { id, name, input } = kind.value;
      if (input.case === "customInput") throw invalidField(place.field, "this model does not take custom tools");
      return { type: "tool_use", id: context.ids.open(id), name, input: toInput(input.value ?? "") };
    }
    case "native":
      return toNativeBlock(context, kind.value);
    case "audio":
      throw invalidField(place.field, "this model does not take audio");
    case "video":
      throw invalidField(place.field, "this model does not take video");
    case "file":
      throw invalidField(place.field, "an assistant message cannot hold a file");
    default:
      return undefined;
  }
}

/** Undefined for reasoning that the provider cannot verify. */
function toThinkingBlock({ kind, signature }: Part): ThinkingBlock | RedactedThinkingBlock | undefined {
  if (kind.case !== "reasoning" || isResponsesState(signature)) return undefined;
  const { text, redacted } = kind.value;
  if (redacted !== "") return { type: "redacted_thinking", data: redacted };
  return signature === "" ? undefined : { type: "thinking", thinking: text, signature };
}

function toResultContent(blocks: readonly ContentBlock[]): ToolResultBlock["content"] {
  if (blocks.length === 0) return undefined;
  const [first] = blocks;
  const plain = blocks.length === 1 && first?.type === "text" && first.cache_control === undefined;
  return plain ? first.text : blocks;
}
