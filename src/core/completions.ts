import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Completion, CompletionRequest, TokenCount } from "../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { CompletionAccounting, type Reserved, Settling } from "./accounting.ts";
import type { Call } from "./call.ts";
import type { Clock } from "./clock.ts";
import { worstCase } from "./cost.ts";
import { Failure, type FieldViolation, invalidField } from "./failure.ts";
import type { Ledger, Recorder } from "./ledger.ts";
import type { Limiter } from "./limiter.ts";
import { makes, type Model, modelNotFound } from "./model.ts";
import { mayUse, type Needs, type Principal } from "./principal.ts";
import type { ProviderOption } from "./provider-options.ts";
import type { Emit } from "./provider.ts";
import type { Mode, Plan, Router } from "./router.ts";
import { estimateTokens, measurePrompt } from "./token-estimate.ts";
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
  /** The input tokens of a request, which is not run. Counts as a request. Throws a Failure, but none of the provider's. */
  count(request: CompletionRequest, call: Call): Promise<TokenCount>;
}

/** The completion service, and the work that its completions leave behind. */
export interface OwnedCompletions extends Completions {
  readonly settling: Settling;
}

/** Ports of core. */
export interface CorePorts {
  readonly router: Router;
  readonly permit: Permit;
  readonly limiter: Limiter;
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly clock: Clock;
}

/** Time after the deadline in which a completion is recorded. */
const SETTLING_MS = 60_000;

/**
 * The pipeline of one completion: find → permit → validate → plan → reserve → run → settle and record. From
 * the reservation on there is exactly one ledger entry, durable before the caller learns of the end.
 */
export function createCompletions(corePorts: CorePorts): OwnedCompletions {
  const ports = { ...corePorts, settling: new Settling() };
  const begin = async (
    meter: CompletionAccounting,
    request: CompletionRequest,
    { call, mode }: CallAndMode,
  ): Promise<Plan> => {
    const plan = admitOrCount(ports, request, { call, mode });
    meter.planned(plan);
    const reserving = reserve(ports, plan, call);
    // Before the first await, or the bodies of all requests that arrived together would stay in memory.
    if (plan.candidates.length === 1) releaseConversation(request);
    meter.reserved(await reserving);
    return plan;
  };
  return {
    settling: ports.settling,

    async create(request, call) {
      const meter = new CompletionAccounting(ports, { request, call, mode: "whole" });
      try {
        const plan = await begin(meter, request, { call, mode: "whole" });
        const { model, answer, report } = await plan.create(meter.routerCall);
        meter.answered(model, answer);
        meter.complete(report);
        const { completionId: id, created } = meter.routerCall;
        return {
          $typeName: "parley.v1.Completion",
          id,
          createTime: timestampFromMs(created * 1000),
          model: model.id,
          choices: answer.choices,
          report,
          ...(answer.usage !== undefined && { usage: answer.usage }),
        };
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        await meter.end();
      }
    },

    async stream(request, call, emit) {
      const meter = new CompletionAccounting(ports, { request, call, mode: "stream" });
      try {
        const plan = await begin(meter, request, { call, mode: "stream" });
        await plan.stream(meter.routerCall, (batch) => {
          // Content has been sent: no other model is tried.
          releaseConversation(request);
          for (const chunk of batch) meter.observe(chunk);
          return emit(batch);
        });
      } catch (reason) {
        throw meter.failed(reason);
      } finally {
        await meter.end();
      }
    },

    async count(request, call) {
      const plan = admitOrCount(ports, request, { call, mode: "whole" });
      const { principal, completionId } = call;
      const { limiter } = ports;
      const reservation = await limiter.reserve({ principal, completionId, tokens: 0, costMicroUsd: 0, lastsMs: 0 });
      reservation.release(0);
      call.admitted(reservation.facts);
      const inputTokens = Math.ceil(estimateTokens(measurePrompt(plan.request)) * COUNT_MARGIN);
      return { $typeName: "parley.v1.TokenCount", model: plan.candidates[0]!.id, inputTokens, estimated: true };
    },
  };
}

/** Factor of estimated counts: a client that compacts its conversation by a count that is too low does it too late. */
const COUNT_MARGIN = 1.1;

interface CallAndMode {
  readonly call: Call;
  readonly mode: Mode;
}

/** Counts a request that is not admitted against the request rate of its key. */
function admitOrCount(ports: CorePorts, request: CompletionRequest, { call, mode }: CallAndMode): Plan {
  try {
    return admit(ports, request, { call, mode });
  } catch (reason) {
    ports.limiter.countRefused(call.principal, Failure.from(reason));
    throw reason;
  }
}

/** Reserves the worst case of the plan. Throws what the limiter and the ledger throw. */
async function reserve({ limiter, ledger }: CorePorts, plan: Plan, call: Call): Promise<Reserved> {
  ledger.admit();
  const { request, candidates, sent } = plan;
  const prompt = measurePrompt(request);
  const { principal, completionId } = call;
  const [primary] = candidates;
  const { totalMs, settleMs } = primary!.timeouts;
  const lastsMs = totalMs + settleMs + SETTLING_MS;
  const { tokens, costMicroUsd } = worstCase(request, { prompt, sent }, candidates);
  const reservation = await limiter.reserve({ principal, completionId, lastsMs, tokens, costMicroUsd });
  call.admitted(reservation.facts);
  return { reservation, prompt, sent, costMicroUsd, hasBudget: limiter.hasBudget(principal) };
}

/**
 * Empties the messages of a request that is no longer needed: translated for its only model, or its answer has begun. An
 * answer may take minutes, in which the garbage collector would copy the messages again and again. The caller still
 * references the request, so its list is emptied in place.
 */
function releaseConversation(request: CompletionRequest): void {
  if (request.messages.length === 0) return;
  request.messages = [];
  request.tools = [];
}

/** Throws `permission_denied` that names the missing permission. */
type Permit = (principal: Principal, needs: Needs) => void;

/** Ports of `admit`. */
interface AdmissionPorts {
  readonly router: Router;
  readonly permit: Permit;
  readonly limiter: Pick<Limiter, "hasBudget">;
}

const NO_OPTIONS: ReadonlySet<ProviderOption> = new Set();

/** Checks a request before anything is sent to a provider, in the documented order. */
function admit(
  { router, permit, limiter }: AdmissionPorts,
  request: CompletionRequest,
  { call, mode }: { readonly call: Pick<Call, "principal" | "permitted" | "unrecognized">; readonly mode: Mode },
): Plan {
  if (request.model === "") throw invalidField("model", "is required");
  const primary = find(router, request.model, { field: "model", principal: call.principal });
  const candidates = [primary];
  // A request with more fallbacks is refused anyway.
  request.fallbackModels.slice(0, MAX_FALLBACKS).forEach((id, index) => {
    const model = find(router, id, { field: `fallback_models[${index}]`, principal: call.principal });
    if (!candidates.includes(model)) candidates.push(model);
  });
  const capability = request.modalities.includes(Modality.IMAGE) ? "images" : "chat";
  const needs: Needs = { models: candidates.map((model) => model.id), capability };
  permit(call.principal, needs);
  call.permitted?.(needs);
  validate(request, primary, () => router.list().flatMap((model) => (makes(model, Modality.IMAGE) ? [model.id] : [])));
  if (request.strict && call.unrecognized !== undefined && call.unrecognized.length > 0)
    throw unrecognized(call.unrecognized);
  const capped = limiter.hasBudget(call.principal);
  const options = call.principal.options ?? (capped ? NO_OPTIONS : undefined);
  return router.plan(request, candidates, { mode, rules: { options, capped } });
}

function find(
  router: Router,
  id: string,
  { field, principal }: { readonly field: string; readonly principal: Principal },
): Model {
  const model = router.find(id);
  if (model !== undefined) return model;
  throw modelNotFound(id, { field, visible: router.list().filter((one) => mayUse(principal, one.id)) });
}

function unrecognized(fields: readonly string[]): Failure {
  const violations: FieldViolation[] = fields.map((field) => ({
    field,
    description: "is not known here, and the request is strict",
  }));
  return new Failure("invalid_request", `${fields[0]}: is not known here, and the request is strict.`, { violations });
}
