import type { Completion, CompletionChunk, CompletionRequest, TokenCount } from "../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";
import type { RoutePlan } from "../../gen/parley/v1/route_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { CompletionAccounting, type Reserved } from "./accounting.ts";
import { Settling } from "./settling.ts";
import { toTimestamp } from "./attempt.ts";
import type { Call } from "./call.ts";
import { ContentRecorder, type ContentStorage } from "./content.ts";
import { inTurn, toRoutePlan } from "./explain.ts";
import { invalidField } from "./failure.ts";
import { firstUnmet, type Requirement, requirementsOf, ruledOut } from "./labels.ts";
import type { Limiter } from "./limiter.ts";
import { type ListedModel, makes, type Model, stateOwner } from "./model.ts";
import { countRequest } from "./models.ts";
import {
  admitOrCount,
  type CorePorts,
  findModel,
  type Permit,
  requireBoundedFees,
  requireKnownFields,
  requirePermission,
  reserve,
  wrongModel,
} from "./pipeline.ts";
import { leaveOutUnknownOptions, type ProviderOption, unknownOmissions } from "./provider-options.ts";
import type { Emit } from "./provider.ts";
import { AnswerSeal, openState, type StateSeal } from "./provider-state.ts";
import { releaseMemory } from "./release-memory.ts";
import { isRoute, type Route } from "./route.ts";
import type { Asked, ExplainAsked, Mode, Plan, Router } from "./router.ts";
import { SpeechType } from "./speech.ts";
import { estimateTokens } from "./token-estimate.ts";
import { MAX_FALLBACKS, validate } from "./validate.ts";

/** The completion service that every inbound protocol calls. It owns the request and may remove its conversation. */
export interface Completions {
  /** One whole completion. Throws a Failure. */
  create(request: CompletionRequest, call: Call): Promise<Completion>;
  /**
   * One completion in batches of chunks, by the grammar of `CompletionService.Stream`. Throws a Failure; after
   * the first batch the failure ends the stream. To stop it, abort the call's signal.
   */
  stream(request: CompletionRequest, call: Call, emit: Emit): Promise<void>;
  /** Counts the input tokens of a request without running it. Counts as a request. Throws a Failure, but none of a provider. */
  count(request: CompletionRequest, call: Call): Promise<TokenCount>;
  /** Explains the plan of a request without running it. Counts as a request. Throws what `create` throws before sending. */
  explain(request: CompletionRequest, call: Call, mode: Mode): Promise<RoutePlan>;
}

/** Ports of completions. */
export interface CompletionPorts extends CorePorts {
  readonly seal: StateSeal;
  /** Stores prompts and answers of keys with `storesContent`. Default: nothing is stored. */
  readonly contents?: ContentStorage | undefined;
}

/** The completion service, and its completions that have ended for the caller but still wait for token counts. */
export interface OwnedCompletions extends Completions {
  readonly settling: Settling;
}

/**
 * The pipeline of one completion: find → permit → validate → plan → reserve → run → settle and record. From
 * the reservation on there is exactly one ledger entry, durable before the caller learns of the end.
 */
export function createCompletions(completionPorts: CompletionPorts): OwnedCompletions {
  const ports = { ...completionPorts, settling: new Settling() };
  const sealOf = ({ principal }: Call, model: Model): AnswerSeal =>
    new AnswerSeal(ports.seal, { accountId: principal.accountId, provider: stateOwner(model) });
  const makePlan: Planner<Plan> = (...asked) => ports.router.plan(...asked);
  const contentOf = (call: Call): ContentRecorder | undefined =>
    ports.contents !== undefined && call.principal.storesContent === true
      ? new ContentRecorder(ports.contents, call)
      : undefined;
  const begin = (
    meter: CompletionAccounting,
    request: CompletionRequest,
    { call, mode, content }: CallAndMode & { readonly content: ContentRecorder | undefined },
  ): { plan: Plan; reserving: Promise<Reserved> } => {
    const plan = admitOrCount(ports, call, () => {
      const admitted = admit(ports, request, { call, mode, plan: makePlan });
      requireBoundedFees(ports, admitted, call);
      content?.asked(request);
      return admitted;
    });
    meter.planned(plan);
    const { candidates, prompt, sent } = plan;
    const reserving = reserve(ports, { request, prompt, candidates, sent }, call);
    // Released before the first await. Otherwise the bodies of all requests that arrived together would stay in memory.
    if (candidates.length === 1) releaseConversation(request, call);
    return { plan, reserving };
  };
  return {
    settling: ports.settling,

    async create(request, given) {
      const call = leaveOutUnknownOptions(request, given);
      const meter = new CompletionAccounting(ports, { request, call, mode: "whole" });
      const content = contentOf(call);
      try {
        const { plan, reserving } = begin(meter, request, { call, mode: "whole", content });
        await meter.reserved(await reserving);
        content?.admitted();
        const { model, answer, report } = await plan.create(meter.routerCall);
        new SpeechType(request.audioOptions).complete(answer.choices);
        meter.answered(model, answer);
        meter.complete(report);
        content?.answered(answer.choices);
        sealOf(call, model).choices(answer.choices);
        const { completionId: id, created } = meter.routerCall;
        return {
          $typeName: "parley.v1.Completion",
          id,
          createTime: toTimestamp(created),
          model: model.id,
          choices: answer.choices,
          report,
          ...(answer.usage !== undefined && { usage: answer.usage }),
        };
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        await meter.end();
        content?.end();
      }
    },

    async stream(request, given, emit) {
      const call = leaveOutUnknownOptions(request, given);
      const meter = new CompletionAccounting(ports, { request, call, mode: "stream" });
      const content = contentOf(call);
      try {
        const { plan, reserving } = begin(meter, request, { call, mode: "stream", content });
        await meter.reserved(await reserving);
        content?.admitted();
        const speech = new SpeechType(request.audioOptions);
        let seal: AnswerSeal | undefined;
        await plan.stream(meter.routerCall, (batch) => {
          speech.completeChunks(batch);
          // Content has been sent: no other model is tried.
          releaseConversation(request, call);
          for (const chunk of batch) meter.observe(chunk);
          content?.add(batch);
          seal ??= sealOf(call, servingModel(plan, batch));
          const sealed = seal.chunks(batch);
          return sealed.length > 0 ? emit(sealed) : undefined;
        });
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        await meter.end();
        content?.end();
      }
    },

    async count(request, given) {
      const call = leaveOutUnknownOptions(request, given);
      const plan = admitOrCount(ports, call, () => admit(ports, request, { call, mode: "whole", plan: makePlan }));
      await countRequest(ports.limiter, call);
      const { principal, signal, hops } = call;
      const { keyFamilyId, accountId } = principal;
      const counted = await plan.count({ signal, keyFamilyId, accountId, hops });
      const inputTokens = counted ?? Math.ceil(estimateTokens(plan.prompt) * COUNT_MARGIN);
      const estimated = counted === undefined;
      return {
        $typeName: "parley.v1.TokenCount",
        model: plan.candidates[0]!.id,
        inputTokens,
        estimated,
        omitted: [...plan.omitted],
      };
    },

    async explain(request, given, mode) {
      // Counted first, because an explanation takes several times the work of a completion.
      await countRequest(ports.limiter, given);
      return explain(ports, request, { call: given, mode });
    },
  };
}

/** The model whose answer a stream begins with. */
function servingModel({ candidates }: Plan, [first]: readonly CompletionChunk[]): Model {
  const id = first?.event.case === "start" ? first.event.value.model : undefined;
  const found = candidates.find((model) => model.id === id);
  if (found === undefined) throw new TypeError("a stream must begin with its model");
  return found;
}

/** As `Completions.explain`, for a viewer who does not hold the key: does not count against the key's limits. */
export function explainFor(
  ports: AdmissionPorts & { readonly limiter: Pick<Limiter, "preview"> },
  request: CompletionRequest,
  asked: CallAndMode,
): Promise<RoutePlan> {
  return explain(ports, request, { ...asked, isForOperator: true });
}

/** Admits and plans a request with reasons, and notes its aliases. Works in several turns of the event loop. */
async function explain(
  ports: AdmissionPorts & { readonly limiter: Pick<Limiter, "preview"> },
  request: CompletionRequest,
  { call: given, mode, isForOperator }: CallAndMode & Pick<ExplainAsked, "isForOperator">,
): Promise<RoutePlan> {
  const call = leaveOutUnknownOptions(request, given);
  const names = [request.model, ...request.fallbackModels];
  const plan = await inTurn(call, () => {
    const explained = admit(ports, request, {
      call,
      mode,
      plan: (wanted, candidates, asked) => ports.router.explain(wanted, candidates, { ...asked, isForOperator }),
    });
    requireBoundedFees(ports, explained, call);
    return explained;
  });
  const ids = [request.model, ...request.fallbackModels];
  const aliases = names.flatMap((name, index) => (name === ids[index]! ? [] : [{ name, model: ids[index]! }]));
  return toRoutePlan(ports, { request, aliases, plan }, call);
}

/** Factor of estimated counts: a client that compacts its conversation by a count that is too low does it too late. */
const COUNT_MARGIN = 1.1;

/** A call, and whether its answer is whole or a stream. */
export interface CallAndMode {
  readonly call: Call;
  readonly mode: Mode;
}

/**
 * Empties the messages of a request that no attempt needs any more: it is translated for its only model, or its answer has begun.
 * An answer may take minutes, in which the garbage collector would copy the messages again and again. The caller still
 * references the request, so the list is emptied in place.
 */
function releaseConversation(request: CompletionRequest, { body }: Pick<Call, "body">): void {
  if (request.messages.length === 0) return;
  for (const { parts } of request.messages) releaseMedia(parts);
  request.messages = [];
  request.tools = [];
  if (body !== undefined) body.json = undefined;
}

/** Releases the bytes of pictures, recordings and documents. */
function releaseMedia(parts: readonly Part[]): void {
  for (const { kind } of parts) {
    if (kind.case === "toolResult") releaseMedia(kind.value.parts);
    else if (kind.case === "image" || kind.case === "audio" || kind.case === "video" || kind.case === "file") {
      const { source } = kind.value;
      if (source.case === "data") releaseMemory([source.value]);
    }
  }
}

/** Ports of the checks and the plan. */
export interface AdmissionPorts {
  readonly seal: StateSeal;
  readonly router: Router;
  readonly permit: Permit;
  readonly limiter: Pick<Limiter, "hasBudget">;
}

const NO_OPTIONS: ReadonlySet<ProviderOption> = new Set();

const makesEmbeddings = (model: ListedModel): boolean => makes(model, Modality.EMBEDDING);

/** A method of the router that plans. */
type Planner<P> = (request: CompletionRequest, candidates: readonly (Model | Route)[], asked: Asked) => P;

interface Admitting<P> extends CallAndMode {
  readonly plan: Planner<P>;
}

/** Checks a request before anything is sent to a provider, in the documented order, and plans it. */
function admit<P extends Pick<Plan, "candidates">>(
  { router, permit, limiter, seal }: AdmissionPorts,
  request: CompletionRequest,
  { call, mode, plan }: Admitting<P>,
): P {
  const { principal } = call;
  if (request.model === "") throw invalidField("model", "is required");
  const primary = findModel(router, request.model, { field: "model", principal });
  // An alias is replaced, so that it does not look like a fallback.
  request.model = primary.id;
  const candidates = [primary];
  // `validate` refuses a request with more fallbacks.
  request.fallbackModels.slice(0, MAX_FALLBACKS).forEach((id, index) => {
    const model = findModel(router, id, { field: `fallback_models[${index}]`, principal });
    request.fallbackModels[index] = model.id;
    if (!candidates.includes(model)) candidates.push(model);
  });
  const capability = request.modalities.includes(Modality.IMAGE) ? "images" : "chat";
  const needs = { models: candidates.map((model) => model.id), capability, attribution: call.attribution } as const;
  requirePermission(permit, call, needs);
  const wrong = candidates.find(makesEmbeddings);
  if (wrong !== undefined) {
    const field = wrong === primary ? "model" : `fallback_models[${request.fallbackModels.indexOf(wrong.id)}]`;
    const isAble = (model: ListedModel): boolean => !makesEmbeddings(model);
    throw wrongModel(router, { field, model: wrong, principal }, { makes: "completions", isAble });
  }
  requireLabels(candidates, requirementsOf(principal.requiredLabels, undefined), request);
  const bounds = isRoute(primary) ? { id: primary.id, upstream: primary.widest } : primary;
  validate(request, bounds, () => router.list().flatMap((model) => (makes(model, Modality.IMAGE) ? [model.id] : [])));
  requireKnownFields(request, call);
  const requirements = requirementsOf(principal.requiredLabels, request.requiredLabels);
  requireLabels(candidates, requirements, request);
  const capped = limiter.hasBudget(principal);
  const options = principal.options ?? (capped ? NO_OPTIONS : undefined);
  const { body, share } = call;
  const rules = { options, capped, mayDraw: principal.capabilities.has("images") };
  const unknown = unknownOmissions(call);
  const state = openState(request, { seal, accountId: principal.accountId, body });
  const asked: Asked = { mode, rules, unknown, state, body, share, caller: principal, requirements };
  const planned = plan(request, candidates, asked);
  if (body !== undefined) body.source = undefined;
  call.permitted?.({ ...needs, labels: planned.candidates.map(({ labels }) => labels) });
  return planned;
}

/** Throws `permission_denied` or `invalid_request` when a candidate, or all targets of one, lacks a label that key or request requires. */
function requireLabels(
  candidates: readonly (Model | Route)[],
  requirements: readonly Requirement[],
  { fallbackModels }: Pick<CompletionRequest, "fallbackModels">,
): void {
  if (requirements.length === 0) return;
  candidates.forEach((candidate, index) => {
    const unmet = unmetBy(candidate, requirements);
    const field = index === 0 ? "model" : `fallback_models[${fallbackModels.indexOf(candidate.id)}]`;
    if (unmet !== undefined) throw ruledOut(field, candidate.id, unmet);
  });
}

/** A requirement that rules a candidate out. A route is ruled out when each target misses one; one of the request is preferred. */
function unmetBy(candidate: Model | Route, requirements: readonly Requirement[]): Requirement | undefined {
  if (!isRoute(candidate)) return firstUnmet(candidate.labels, requirements);
  const unmet = candidate.targets.map(({ model }) => firstUnmet(model.labels, requirements));
  return unmet.includes(undefined) ? undefined : (unmet.find((one) => one?.by === "request") ?? unmet[0]);
}
