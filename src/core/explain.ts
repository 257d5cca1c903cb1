import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import {
  type FollowedAlias,
  type RoutePlan,
  RoutePlanSchema,
  type RouteStepSchema,
} from "../../gen/parley/v1/route_pb.js";
import type { Call } from "./call.ts";
import { boundCost, worstCase } from "./cost.ts";
import { reasonOf } from "./error-reason.ts";
import { Failure } from "./failure.ts";
import type { Limiter } from "./limiter.ts";
import { toPriceFields } from "./models.ts";
import type { ExplainedModel, ExplainedTranslation, PlanExplanation } from "./router.ts";
import { estimateTokens } from "./token-estimate.ts";

/** A request after its admission, and its plan. */
export interface Explained {
  readonly request: CompletionRequest;
  readonly aliases: readonly Pick<FollowedAlias, "name" | "model">[];
  readonly plan: PlanExplanation;
}

/** The contract's message about a plan that is not run. Previews the limits without reserving anything. */
export async function toRoutePlan(
  { limiter }: { readonly limiter: Pick<Limiter, "preview"> },
  { request, aliases, plan }: Explained,
  call: Pick<Call, "principal" | "attribution" | "completionId" | "share">,
): Promise<RoutePlan> {
  const { route, prompt, sent, candidates, steps, leftOut } = plan;
  const { principal, attribution, completionId } = call;
  const translations = await translateEach(steps, call);
  const { tokens, costMicroUsd } = worstCase(request, { prompt, sent }, candidates);
  const refusals = await limiter.preview({ principal, attribution, completionId, tokens, costMicroUsd, lastsMs: 0 });
  const toStep = (explained: ExplainedModel): MessageInitShape<typeof RouteStepSchema> =>
    toStepMessage(explained, { request, plan, translations });
  return create(RoutePlanSchema, {
    model: request.model,
    aliases: [...aliases],
    policy: route?.policy ?? "",
    affinity: route?.affinity ?? false,
    steps: steps.map(toStep),
    leftOut: leftOut.map(toStep),
    promptTokens: BigInt(estimateTokens(prompt)),
    reservedTokens: BigInt(tokens),
    ...(costMicroUsd !== undefined && { reservedMicroUsd: BigInt(costMicroUsd) }),
    refusals: refusals.map((failure) => ({
      reason: reasonOf(failure),
      message: failure.message,
      ...(failure.retryAfterMs !== undefined && { retryDelay: durationFromMs(Math.ceil(failure.retryAfterMs)) }),
    })),
  });
}

/** Runs work of a call in its own turn of the event loop. */
export async function inTurn<T>({ share }: Pick<Call, "share">, run: () => T): Promise<T> {
  return share === undefined ? run() : share.workInTurn(run);
}

type Translations = ReadonlyMap<ExplainedModel["translate"], ExplainedTranslation | Failure>;

/** Makes each distinct translation once, each in its own turn of the event loop. */
async function translateEach(steps: readonly ExplainedModel[], call: Pick<Call, "share">): Promise<Translations> {
  const made = new Map<ExplainedModel["translate"], ExplainedTranslation | Failure>();
  for (const { translate } of steps)
    if (translate !== undefined && !made.has(translate)) made.set(translate, await inTurn(call, translate));
  return made;
}

function toStepMessage(
  { model, reason, message, figures, translate }: ExplainedModel,
  {
    request,
    plan: { prompt },
    translations,
  }: Pick<Explained, "request" | "plan"> & { readonly translations: Translations },
): MessageInitShape<typeof RouteStepSchema> {
  const { id, providerName, labels, price } = model;
  const facts = {
    model: id,
    reason,
    message,
    provider: providerName,
    ...labels,
    ...(figures !== undefined && { figures }),
    ...(price !== undefined && toPriceFields(price)),
  };
  const translation = translations.get(translate);
  if (translation === undefined) return facts;
  if (translation instanceof Failure) return { ...facts, refusal: translation.message };
  const { omitted, clamped, sent } = translation;
  const cost = boundCost(request, { prompt, sent, model });
  return {
    ...facts,
    omitted: [...omitted],
    clamped: [...clamped],
    ...(cost !== undefined && { worstCaseMicroUsd: BigInt(cost) }),
  };
}
