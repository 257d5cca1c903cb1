import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { TranslateOptions, Translation, UpstreamModel } from "../../core/provider.ts";
import { omitUnsupported, refuseImpossible, toJsonFormat, toSampling } from "../wire/block-request.ts";
import { lacksReasoningInToolLoop, toFinalTurns, Place } from "../wire/block-turns.ts";
import { ToolCallIds } from "../wire/tool-call-ids.ts";
import { TranslationLog } from "../wire/translation.ts";
import { CacheMarks, type TranslationContext } from "./cache-marks.ts";
import { DocumentNames } from "./documents.ts";
import { toMessages } from "./messages.ts";
import { toReasoning } from "./reasoning.ts";
import { toTools } from "./tools.ts";
import { KINDS, trimPrefill } from "./turns.ts";
import type { ConverseBody } from "./wire.ts";

/**
 * The request as the body of `POST /model/{modelId}/converse` and `…/converse-stream`, which take the same body. A pure function.
 * Throws `invalid_request` for unsupported fields that must not be omitted.
 */
export function toConverseRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  { mode }: TranslateOptions,
): Translation {
  const log = new TranslationLog();
  const { capabilities } = model;
  const context: TranslationContext = {
    request,
    model,
    log,
    marks: new CacheMarks(log, capabilities.cachePoints),
    ids: new ToolCallIds(),
    place: new Place(),
    documents: new DocumentNames(),
  };
  refuseImpossible(request);

  const asked =
    request.maxOutputTokens === undefined
      ? undefined
      : log.clampToRange("max_output_tokens", request.maxOutputTokens, [1, model.maxOutputTokens]);
  const limit = asked ?? Math.min(model.defaultMaxTokens, model.maxOutputTokens);
  const { system, turns } = toMessages(context);
  const { tools, toolChoice } = toTools(context, turns);
  const { schema, instruction } = toJsonFormat(context);
  const manualRefused = toolChoice !== undefined || lacksReasoningInToolLoop(turns, KINDS);
  const reasoning = toReasoning(context, { maxTokens: limit, manualRefused });
  // Most models have a default token limit. A request with a thinking budget needs an explicit limit above the budget.
  const maxTokens = asked ?? (reasoning.fields.thinking?.type === "enabled" ? limit : undefined);
  if (instruction !== undefined) system.push({ text: instruction });
  const { temperature, topP, topK } = toSampling(context, {
    reasoning: reasoning.thinks,
    // Converse has no field for `top_k`. Models that think in blocks take it as a model field of the same name.
    hasTopK: capabilities.reasoning === "budget" || capabilities.reasoning === "adaptive",
  });
  const messages = toFinalTurns(turns, () => (capabilities.prefill && !reasoning.thinks ? trimPrefill(turns) : []));
  const stopSequences = request.stopSequences.length > 0 ? request.stopSequences : undefined;
  const tier = toServiceTier(context);
  omitUnsupported(request, log);
  log.omitWhen(Boolean(request.endUserId), "end_user_id");
  log.omitWhen(Boolean(request.safetyIdentifier), "safety_identifier");
  for (const name of Object.keys(request.providerOptionsJson).toSorted()) log.omit(`provider_options_json.${name}`);

  const { marks } = context;
  marks.settle([...tools, ...system, ...messages.flatMap(({ content }) => content)]);
  const body: ConverseBody = {
    system: system.length > 0 ? marks.withPoints(system) : undefined,
    messages: messages.map(({ role, content }) => ({ role, content: marks.withPoints(content) })),
    inferenceConfig: ifAny({ maxTokens, temperature, topP, stopSequences }),
    toolConfig: tools.length > 0 ? { tools: marks.withPoints(tools), toolChoice } : undefined,
    outputConfig: ifAny({ textFormat: toTextFormat(request, schema), effort: reasoning.effort }),
    additionalModelRequestFields: ifAny({ ...reasoning.fields, top_k: topK }),
    // Models that do not report the matched stop sequence ignore this field.
    additionalModelResponseFieldPaths: stopSequences && ["/stop_sequence"],
    serviceTier: tier === undefined ? undefined : { type: tier },
  };
  const streamed = mode === "stream" || limit > capabilities.streamAbove;
  return log.finish(body, { streamed, maxTokens, tier, cacheWrite: marks.longest });
}

/** The fields, if any of them is set. */
function ifAny<T extends object>(fields: T): T | undefined {
  return Object.values(fields).some((value) => value !== undefined) ? fields : undefined;
}

function toTextFormat(
  { responseFormat }: CompletionRequest,
  schema: object | undefined,
): NonNullable<ConverseBody["outputConfig"]>["textFormat"] {
  const format = responseFormat?.format;
  if (schema === undefined || format?.case !== "jsonSchema") return undefined;
  const jsonSchema = { schema: JSON.stringify(schema), name: format.value.name || undefined };
  return { type: "json_schema", structure: { jsonSchema } };
}

const TIERS: ReadonlySet<string> = new Set(["default", "flex", "priority"]);

/** The service tier; `auto` is the provider's default. */
function toServiceTier({ request: { serviceTier }, log }: TranslationContext): string | undefined {
  if (serviceTier === undefined || serviceTier === "auto") return undefined;
  if (TIERS.has(serviceTier)) return serviceTier;
  log.omit("service_tier");
  return undefined;
}

/** Fields of a request that a count takes. Source: `ConverseTokensRequest` of the AWS SDK. */
const COUNTED = ["messages", "system", "toolConfig", "additionalModelRequestFields"] as const;

/** The body of `POST /model/{modelId}/count-tokens` for a translated request. */
export function toCountBody(body: Buffer): Buffer {
  const request = JSON.parse(body.toString()) as Record<string, unknown>;
  const converse = Object.fromEntries(COUNTED.map((name) => [name, request[name]]));
  return Buffer.from(JSON.stringify({ input: { converse } }));
}
