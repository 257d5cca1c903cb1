import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { type Conversation, isBlank, toConversation, toInput } from "../wire/block-turns.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { toImageBlock, toResultBlocks, toTextBlocks, toUserBlocks } from "./parts.ts";
import { KINDS, settleSystemTurns } from "./turns.ts";
import type { Block, ReasoningBlock, TextBlock } from "./wire.ts";

/** Converts a request's messages to a system prompt and turns. A system message after the first turn stays in place if the model allows it. */
export function toMessages(context: TranslationContext): Conversation<Block, TextBlock> {
  return toConversation<Block, TextBlock>(context, {
    ...KINDS,
    toText: (parts) => toTextBlocks(context, parts),
    toUser: (parts) => toUserBlocks(context, parts),
    toAssistant: (part) => toAssistantBlock(context, part),
    toReasoning: toReasoningBlock,
    toImage: (image) => toImageBlock(context, image),
    toResult: (toolUseId, { parts, isError }) => {
      const content = toResultBlocks(context, parts);
      return { toolResult: { toolUseId, content, status: isError ? "error" : undefined } };
    },
    settle: (turns) => settleSystemTurns(turns, context.model.capabilities),
  });
}

/** A reasoning block with the provider's state. Undefined without state: the provider could not verify such reasoning. */
function toReasoningBlock({ kind, signature }: Part): ReasoningBlock | undefined {
  if (kind.case !== "reasoning") return undefined;
  const { text, redacted } = kind.value;
  if (redacted !== "") return { reasoningContent: { redactedContent: redacted } };
  return signature === "" ? undefined : { reasoningContent: { reasoningText: { text, signature } } };
}

function toAssistantBlock({ ids, log, place }: TranslationContext, { kind }: Part): Block | undefined {
  switch (kind.case) {
    case "text":
    case "refusal":
      return isBlank(kind.value) ? undefined : { text: kind.value };
    case "toolCall": {
      const { id, name, input } = kind.value;
      if (input.case === "customInput") throw invalidField(place.field, "this model does not take custom tools");
      return { toolUse: { toolUseId: ids.open(id), name, input: toInput(input.value ?? "") } };
    }
    case "native":
      log.omit(place.field);
      return undefined;
    case "audio":
    case "video":
    case "file":
      throw invalidField(
        place.field,
        `an assistant message cannot hold ${kind.case === "file" ? "a file" : kind.case}`,
      );
    default:
      return undefined;
  }
}
