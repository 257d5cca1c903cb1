import { createHash } from "node:crypto";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { toolsInParts } from "../../core/native-tools.ts";
import type { TranslateOptions, Translation, UpstreamCall, UpstreamModel } from "../../core/provider.ts";
import { omitUnsupported, refuseImpossible, toJsonFormat, toSampling } from "../wire/block-request.ts";
import { isBlank, lacksReasoningInToolLoop, Place, toFinalTurns } from "../wire/block-turns.ts";
import { ToolCallIds } from "../wire/tool-call-ids.ts";
import { TranslationLog } from "../wire/translation.ts";
import { longestMark, toCallersBody } from "./callers-body.ts";
import { CacheMarks, type TranslationContext } from "./cache-marks.ts";
import { toMessages } from "./messages.ts";
import { toOtherFields } from "./other-fields.ts";
import { isReasoning, toReasoning } from "./reasoning.ts";
import { type AnthropicSite, betasOf, DIRECT } from "./site.ts";
import { toolUsesOf } from "./tool-uses.ts";
import { toTools } from "./tools.ts";
import { hasReasoning, KINDS, trimPrefill } from "./turns.ts";
import type { MessagesBody } from "./wire.ts";

/**
 * The request as the body of `POST /v1/messages`, or of its counterpart at `site`. A pure function with byte-identical results: the
 * provider's prompt cache and its check of returned reasoning depend on that. The body requests a stream in mode `stream`, and in
 * mode `whole` when the answer may be longer than `streamAbove`, because networks cut long silent calls. Throws `invalid_request`
 * for unsupported fields that must not be omitted.
 */
export function toAnthropicRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode, callers, site = DIRECT }: TranslateOptions & { readonly site?: AnthropicSite },
): Translation {
  const log = new TranslationLog();
  const context: TranslationContext = {
    request,
    model,
    log,
    marks: new CacheMarks(log),
    ids: new ToolCallIds(),
    place: new Place(),
  };
  refuseImpossible(request);

  const maxTokens =
    request.maxOutputTokens === undefined
      ? Math.min(model.defaultMaxTokens, model.maxOutputTokens)
      : log.clampToRange("max_output_tokens", request.maxOutputTokens, [1, model.maxOutputTokens]);
  const streamed = mode === "stream" || maxTokens > model.capabilities.streamAbove;
  const conversation = toMessages(context);
  const { tools, tool_choice } = toTools(context, conversation.turns);
  const { schema, instruction } = toJsonFormat(context);
  const forced = tool_choice?.type === "any" || tool_choice?.type === "tool";
  const reasoning = toReasoning(context, {
    maxTokens,
    manualRefused: forced || lacksReasoningInToolLoop(conversation.turns, KINDS),
    replayed: hasReasoning(conversation.turns),
  });
  const { fields, betas, billingText } = toOtherFields(request, log);
  const { system } = conversation;
  if (instruction !== undefined) system.push({ type: "text", text: instruction });
  if (billingText !== undefined) system.unshift({ type: "text", text: billingText });
  const format = schema && { type: "json_schema", schema };
  const { temperature, topP, topK } = toSampling(context, { reasoning: isReasoning(reasoning) });

  const body: MessagesBody = {
    model: model.name,
    max_tokens: maxTokens,
    stream: streamed || undefined,
    thinking: reasoning.thinking,
    output_config: reasoning.effort || format ? { effort: reasoning.effort, format } : undefined,
    temperature,
    top_p: topP,
    top_k: topK,
    stop_sequences: toStopSequences(context),
    metadata: toMetadata(context),
    service_tier: toServiceTier(context),
    tools,
    tool_choice,
    system: system.length > 0 ? system : undefined,
    messages: toFinalTurns(conversation.turns, () =>
      model.capabilities.prefill && !isReasoning(reasoning) ? trimPrefill(conversation.turns) : [],
    ),
    ...fields,
  };
  omitUnsupported(request, log);
  context.marks.settle(body);
  const facts = { streamed, maxTokens, tier: body.service_tier, cacheWrite: context.marks.longest, betas };
  const own = log.isComplete ? toCallersBody(callers, body) : undefined;
  const sent = site.toBody(own ?? body, betasOf(model, betas));
  const uses = toolUsesOf(own ?? body, toolsInParts(request.messages, "anthropic"));
  return own === undefined
    ? log.finish(sent, { ...facts, uses })
    : log.finish(sent, {
        ...facts,
        uses,
        cacheWrite: longestMark,
        headers: callers?.headers,
        isCallers: true,
        source: callers?.source,
      });
}

/** Stop sequences. Blank ones are omitted because the provider refuses them. */
function toStopSequences({ request: { stopSequences }, log }: TranslationContext): string[] | undefined {
  if (stopSequences.length === 0) return undefined;
  stopSequences.forEach((text, index) => log.omitWhen(isBlank(text), `stop_sequences[${index}]`));
  const kept = stopSequences.filter((text) => !isBlank(text));
  return kept.length > 0 ? kept : undefined;
}

/** The caller's end user. An e-mail address is sent as its hash, because the provider asks for no personal data. */
function toMetadata({ request: { endUserId, safetyIdentifier }, log }: TranslationContext): MessagesBody["metadata"] {
  const id = endUserId ?? safetyIdentifier;
  log.omitWhen(safetyIdentifier !== undefined && safetyIdentifier !== id, "safety_identifier");
  if (id === undefined || id === "") return undefined;
  return { user_id: id.includes("@") ? createHash("sha256").update(id).digest("hex") : id };
}

/** The service tier. */
function toServiceTier({ request: { serviceTier }, log }: TranslationContext): MessagesBody["service_tier"] {
  if (serviceTier === "auto") return "auto";
  if (serviceTier === "default") return "standard_only";
  log.omitWhen(serviceTier !== undefined, "service_tier");
  return undefined;
}

/** Fields of a request that `count_tokens` takes; it refuses all others. Source: `MessageCountTokensParams` of the official SDK. */
const COUNTED = ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"] as const;

/** The body of `count_tokens` for a translated request. */
export function toCountBody({ model, translation }: UpstreamCall, site: AnthropicSite): Buffer {
  const request = { ...(JSON.parse(translation.body.toString()) as Record<string, unknown>), model: model.name };
  const counted = Object.fromEntries(COUNTED.map((name) => [name, request[name as keyof typeof request]]));
  return Buffer.from(JSON.stringify(site.toCountBody(counted)));
}
