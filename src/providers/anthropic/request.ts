import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { Translation, UpstreamModel } from "../../core/provider.ts";
import { TranslationLog } from "../wire/translation.ts";
import { CacheMarks } from "./cache-marks.ts";
import { toMessages } from "./messages.ts";
import type { TranslationContext } from "./context.ts";
import {
  noteUnsupported,
  refuseImpossible,
  toMetadata,
  toSampling,
  toServiceTier,
  toStopSequences,
} from "./parameters.ts";
import { isReasoning, toReasoning } from "./reasoning.ts";
import { toResponseFormat } from "./response-format.ts";
import { ToolCallIds } from "./tool-call-ids.ts";
import { toTools } from "./tools.ts";
import { endsWithAssistant, hasReasoning, lacksReasoningInToolLoop, trimPrefill } from "./turns.ts";
import type { MessagesBody, Turn } from "./wire.ts";

/**
 * The request as the body of `POST /v1/messages`. A pure function, to the byte: the provider's prompt cache and its
 * check of returned reasoning depend on it. The body asks for a stream in mode `stream`, and also in mode `whole` when
 * the answer may be longer than `streamAbove`, because long silent calls get cut on their way. Throws `invalid_request`
 * for what the model cannot do and must not be dropped in silence.
 */
export function toAnthropicRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  mode: "whole" | "stream",
): Translation {
  const log = new TranslationLog();
  const context: TranslationContext = { request, model, log, marks: new CacheMarks(log), ids: new ToolCallIds() };
  refuseImpossible(context);

  const maxTokens =
    request.maxTokens === undefined
      ? Math.min(model.defaultMaxTokens, model.maxOutputTokens)
      : log.clamp("max_tokens", request.maxTokens, [1, model.maxOutputTokens]);
  const streamed = mode === "stream" || maxTokens > model.capabilities.streamAbove;
  const conversation = toMessages(context);
  const { tools, tool_choice } = toTools(context, conversation.turns);
  const { format, instruction } = toResponseFormat(context);
  const forced = tool_choice?.type === "any" || tool_choice?.type === "tool";
  const reasoning = toReasoning(context, {
    maxTokens,
    manualRefused: forced || lacksReasoningInToolLoop(conversation.turns),
    replayed: hasReasoning(conversation.turns),
  });
  const system = instruction === undefined ? conversation.system : [...conversation.system, instruction];

  const body: MessagesBody = {
    model: model.name,
    max_tokens: maxTokens,
    stream: streamed || undefined,
    thinking: reasoning.thinking,
    output_config: reasoning.effort || format ? { effort: reasoning.effort, format } : undefined,
    ...toSampling(context, { reasoning: isReasoning(reasoning) }),
    stop_sequences: toStopSequences(context),
    metadata: toMetadata(context),
    service_tier: toServiceTier(context),
    tools,
    tool_choice,
    system: system.length > 0 ? system : undefined,
    messages: toFinalTurns(context, conversation.turns, { reasoning: isReasoning(reasoning) }),
  };
  noteUnsupported(context);
  context.marks.settle(body);
  return log.finish(body, { streamed, maxTokens, tier: body.service_tier, cacheWrite: context.marks.longest });
}

/** The turns, where the last one may be the beginning of the answer: only some models go on from there. */
function toFinalTurns(
  { model }: TranslationContext,
  turns: readonly Turn[],
  { reasoning }: { readonly reasoning: boolean },
): readonly Turn[] {
  if (!endsWithAssistant(turns)) return turns;
  const continued = model.capabilities.prefill && !reasoning ? trimPrefill(turns) : [];
  if (continued.length === 0) throw invalidField("messages", "must end with a user message");
  return continued;
}
