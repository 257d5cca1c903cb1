import type { EmbeddingRequest, Embeddings } from "../../gen/parley/v1/embedding_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { CompletionAccounting } from "./accounting.ts";
import type { Call } from "./call.ts";
import type { Capped } from "./cost.ts";
import { invalidField } from "./failure.ts";
import { firstUnmet, type Requirement, requirementsOf, ruledOut } from "./labels.ts";
import { type ListedModel, makes, type Model } from "./model.ts";
import {
  admitOrCount,
  findModel,
  type PipelinePorts,
  requireKnownFields,
  requirePermission,
  reserve,
  wrongModel,
} from "./pipeline.ts";
import { unknownOmissions } from "./provider-options.ts";
import type { EmbeddingAnswer } from "./provider.ts";
import { isRoute } from "./route.ts";
import type { Principal } from "./principal.ts";
import type { EmbeddingPlan, Router } from "./router.ts";
import { measureInputs } from "./token-estimate.ts";
import { isOfLaterVersion, textsOf, validateEmbedding } from "./validate-embedding.ts";

/** The embedding service that every inbound protocol calls. It owns the request and may remove its inputs. */
export interface Embedder {
  /** Returns a vector for each input. Throws a Failure. */
  create(request: EmbeddingRequest, call: Call): Promise<Embeddings>;
}

/** Embeddings have no output tokens. */
const NO_OUTPUT: Capped = { maxOutputTokens: 0 };

/** Dimensions of the largest vectors that are usual. */
const USUAL_DIMENSIONS = 3_072;
const NUMBER_BYTES = 8;

/**
 * The pipeline of an embedding call: that of completions, with fallback only to models that make the same vectors. From the reservation
 * on there is exactly one ledger entry, durable before the caller learns of the end.
 */
export function createEmbedder(ports: PipelinePorts): Embedder {
  return {
    async create(request, call) {
      const metered = {
        ...NO_OUTPUT,
        // `admit` replaces an alias in `request.model`.
        get model() {
          return request.model;
        },
      };
      if (call.trace !== undefined) call.trace.isEmbedding = true;
      const meter = new CompletionAccounting(ports, { request: metered, call, mode: "whole" });
      try {
        const plan = admitOrCount(ports, call, () => admit(ports, request, call));
        meter.planned(plan);
        call.share?.holdAnswer(vectorBytes(request.inputs.length, dimensionsOf(request, plan.candidates[0]!)));
        const reserving = reserve(
          ports,
          { ...plan, request: NO_OUTPUT, prompt: measureInputs(textsOf(request.inputs)) },
          call,
        );
        const isLeftOut = request.inputs.map(isOfLaterVersion);
        // Translated for its only model, so no attempt needs the inputs. Removed before the first await: otherwise the inputs of
        // all waiting requests would stay in memory.
        if (plan.candidates.length === 1) request.inputs = [];
        await meter.reserved(await reserving);
        const { model, answer, report } = await plan.create(meter.routerCall);
        const { vectors, usage } = answer;
        meter.answered(model, { usage, choices: [] });
        report.omitted = [...unknownOmissions(call), ...report.omitted];
        meter.complete(report);
        return {
          $typeName: "parley.v1.Embeddings",
          id: call.completionId,
          model: model.id,
          embeddings: inPlaces(vectors, isLeftOut).map((values) => ({ $typeName: "parley.v1.Embedding", values })),
          report,
          ...(usage !== undefined && { usage }),
        };
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        await meter.end();
      }
    },
  };
}

/** The requested length of the vectors. Undefined when it is unknown before the answer: a model without `embeddingDimensions` ignores it. */
function dimensionsOf({ dimensions }: EmbeddingRequest, { upstream }: Model): number | undefined {
  return upstream.capabilities.embeddingDimensions ? dimensions : undefined;
}

/** Bytes of the vectors in memory while they are sent. Without `dimensions`, of vectors of the largest usual length. */
export function vectorBytes(vectors: number, dimensions = USUAL_DIMENSIONS): number {
  return vectors * dimensions * NUMBER_BYTES;
}

/** The vectors with an empty one in place of each input that was left out. */
function inPlaces(vectors: EmbeddingAnswer["vectors"], isLeftOut: readonly boolean[]): EmbeddingAnswer["vectors"] {
  let next = 0;
  return isLeftOut.includes(true) ? isLeftOut.map((left) => (left ? [] : vectors[next++]!)) : vectors;
}

const makesEmbeddings = (model: ListedModel): boolean => makes(model, Modality.EMBEDDING);

/** Checks a request before anything is sent to a provider, in the order of completions. */
function admit(
  { router, permit }: Pick<PipelinePorts, "router" | "permit">,
  request: EmbeddingRequest,
  call: Call,
): EmbeddingPlan {
  const { principal } = call;
  if (request.model === "") throw invalidField("model", "is required");
  const model = findModel(router, request.model, { field: "model", principal });
  request.model = model.id;
  const needs = { models: [model.id], capability: "embeddings", attribution: call.attribution } as const;
  requirePermission(permit, call, needs);
  if (isRoute(model) || !makesEmbeddings(model))
    throw wrongModel(router, { field: "model", model, principal }, { makes: "embeddings", isAble: makesEmbeddings });
  requireLabels(model, requirementsOf(principal.requiredLabels, undefined));
  validateEmbedding(request);
  requireKnownFields(request, call);
  requireLabels(model, requirementsOf(undefined, request.requiredLabels));
  const candidates = [model, ...interchangeable(router, model, { principal, request })];
  call.permitted?.({ ...needs, labels: candidates.map(({ labels }) => labels) });
  return router.planEmbeddings(request, candidates);
}

/** The models that may serve in place of `model`. The key needs no permission for them, as for the targets of a route. */
function interchangeable(
  router: Pick<Router, "find">,
  { interchangeable: ids = [] }: Model,
  { principal, request }: { readonly principal: Principal; readonly request: EmbeddingRequest },
): Model[] {
  const requirements = requirementsOf(principal.requiredLabels, request.requiredLabels);
  return ids.flatMap((id) => {
    const other = router.find(id, principal);
    if (other === undefined || isRoute(other)) return [];
    return firstUnmet(other.labels, requirements) === undefined ? [other] : [];
  });
}

/** Throws `permission_denied` or `invalid_request` when the model lacks a label that the key or the request requires. */
function requireLabels(model: Model, requirements: readonly Requirement[]): void {
  const unmet = firstUnmet(model.labels, requirements);
  if (unmet !== undefined) throw ruledOut("model", model.id, unmet);
}
