import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type BreakerSchema,
  BreakerState,
  type LatencySchema,
  type ModelSchema,
  type ModelService,
  type TestFailureSchema,
  type UpstreamSchema,
} from "../../../gen/parley/console/v1/model_pb.js";
import type { AccessContext } from "../../access/context.ts";
import type { KeyStore } from "../../access/key-store.ts";
import type { Clock } from "../../core/clock.ts";
import type { Completions } from "../../core/completions.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { canAnswerOneToken, type ListedModel, type Model, upstreamKey } from "../../core/model.ts";
import { MODEL_STAGES, toCapabilitiesMessage, toPriceFields } from "../../core/models.ts";
import { isRoute, type Route } from "../../core/route.ts";
import type { TargetHistoryStore } from "../../ledger/target-history.ts";
import { addFields } from "../attribution.ts";
import { newCompletionId } from "../calls.ts";
import { unknownFields } from "../unknown-fields.ts";
import { accountsInView, actorOf, callOf, signedInOf } from "./call.ts";
import { answersInTurn } from "./large-answers.ts";
import { listTargetHistory } from "./target-history.ts";
import { findPrincipal } from "./key-principal.ts";
import type {
  HealthRecorder,
  Latency,
  Opening,
  UpstreamFailure,
  UpstreamHealth,
} from "../../router/upstream-health.ts";

/** Ports of the model service. */
export interface ModelServicePorts {
  readonly access: Pick<AccessContext, "log">;
  /** Current models and routes, in the order of the registry. */
  readonly models: () => readonly (Model | Route)[];
  readonly health: Pick<HealthRecorder, "of" | "sinceMs">;
  /** The open breaker of a model's upstream model; undefined while it is closed. */
  readonly openingOf: (model: Model) => Opening | undefined;
  /** Attempts at upstream models by time, and the breakers of all processes. */
  readonly targets: Pick<TargetHistoryStore, "read" | "readLatencies" | "replicas">;
  /** Explains a request without counting it for the key's limits. */
  readonly explain: Completions["explain"];
  readonly keys: Pick<KeyStore, "findWithHash">;
  /** Asks the provider of a model for one token; returns the time it took in ms. Throws a Failure. */
  readonly testModel: (model: Model) => Promise<number>;
  /** Advice after a failed test; undefined without any. */
  readonly adviceOnTest: (failure: Failure, model: Model) => string | undefined;
  readonly clock: Clock;
}

/** Models for all accounts, and upstream health for administrators. */
export function createModelService({
  access,
  models,
  health,
  openingOf,
  targets,
  explain,
  keys,
  testModel,
  adviceOnTest,
  clock,
}: ModelServicePorts): ServiceImpl<typeof ModelService> {
  const conditionOf = (model: Model): Condition => ({
    health: health.of(model),
    rest: openingOf(model),
    nowMs: clock.now(),
  });
  let isTesting = false;
  const inTurn = answersInTurn(clock);
  return {
    list: (_, context) =>
      inTurn(context, () => ({
        models: models().map((model) =>
          isRoute(model) ? toRouteMessage(model) : toModelMessage(model, conditionOf(model)),
        ),
      })),

    listUpstreams() {
      const upstreams = Map.groupBy(
        models().filter((model): model is Model => !isRoute(model)),
        upstreamKey,
      );
      return {
        upstreams: [...upstreams.values()].map((group) => {
          const [first, ...others] = group as [Model, ...Model[]];
          return toUpstreamMessage([first, ...others], conditionOf(first));
        }),
        since: timestampFromMs(health.sinceMs()),
        time: timestampFromMs(clock.now()),
      };
    },

    listTargetHistory: (request) => listTargetHistory(targets, request, clock.now()),

    async explainRoute({ keyId, completion, stream }, context) {
      const { requestId, arrivedMs, open } = callOf(context);
      const owners = accountsInView(signedInOf(context), "keys.read");
      const principal = await findPrincipal({ keys, clock }, keyId, owners);
      if (completion === undefined) throw invalidField("completion", "is required");
      const call = {
        principal,
        attribution: addFields(undefined, completion),
        requestId,
        completionId: newCompletionId(),
        entrance: "console",
        signal: open.signal,
        arrivedMs,
        unrecognized: unknownFields(completion),
        share: open,
        admitted: () => undefined,
      } as const;
      return { plan: await explain(completion, call, stream ? "stream" : "whole") };
    },

    async testModel({ modelId }, context) {
      const model = models().find(({ id }) => id === modelId);
      if (model === undefined) throw invalidField("model_id", "is no model of this gateway");
      if (isRoute(model)) throw invalidField("model_id", "is a model with targets; test one of these");
      if (!canAnswerOneToken(model))
        throw invalidField("model_id", "makes pictures or embeddings, which are not tested");
      if (isTesting) throw new Failure("rate_limited", "Another test is running. Try again when it has ended.");
      isTesting = true;
      try {
        await access.log.record({ action: "model_tested", ...actorOf(context), details: { model: modelId } });
        return { durationMs: await testModel(model) };
      } catch (reason) {
        return { failure: toTestFailure(Failure.from(reason), model) };
      } finally {
        isTesting = false;
      }
    },
  };

  function toTestFailure(failure: Failure, model: Model): MessageInitShape<typeof TestFailureSchema> {
    const { code, message, upstreamStatus } = failure;
    const advice = adviceOnTest(failure, model) ?? "";
    const status = upstreamStatus === undefined ? {} : { httpStatusCode: upstreamStatus };
    return { outcome: code, reason: message, advice, ...status };
  }
}

/** Health of the upstream model of a model. */
interface Condition {
  readonly health: UpstreamHealth;
  readonly rest: Opening | undefined;
  readonly nowMs: number;
}

/** A model without address and credential of its provider. */
function toModelMessage(model: Model, condition: Condition): MessageInitShape<typeof ModelSchema> {
  const { attempts, failures, firstContent } = condition.health;
  return {
    ...toFacts(model),
    breaker: toBreakerMessage(condition),
    firstContent: toLatencyMessage(firstContent),
    attempts: BigInt(attempts),
    failures: BigInt(failures),
  };
}

/** A route, whose health is that of its targets. */
function toRouteMessage(route: Route): MessageInitShape<typeof ModelSchema> {
  return { ...toFacts(route), targets: route.targets.map(({ model }) => model.id) };
}

function toFacts(model: ListedModel) {
  const { id, description, providerName, stage, shutdown, price, upstream } = model;
  return {
    id,
    description,
    provider: providerName,
    stage: MODEL_STAGES[stage],
    ...(shutdown !== undefined && { shutdownTime: timestampFromMs(shutdown * 1000) }),
    inputModalities: [...upstream.inputModalities],
    outputModalities: [...upstream.outputModalities],
    capabilities: toCapabilitiesMessage(upstream.capabilities),
    contextWindow: upstream.contextWindow,
    maxOutputTokens: upstream.maxOutputTokens,
    ...(price !== undefined && toPriceFields(price)),
  };
}

/** The upstream model of all these models. */
function toUpstreamMessage(
  models: readonly [Model, ...Model[]],
  condition: Condition,
): MessageInitShape<typeof UpstreamSchema> {
  const [{ providerName, upstream }] = models;
  const { attempts, failures, outcomes, firstContent, duration, lastFailures } = condition.health;
  const byCount = [...outcomes].toSorted(([, one], [, other]) => other - one);
  return {
    provider: providerName,
    name: upstream.name,
    modelIds: models.map(({ id }) => id),
    breaker: toBreakerMessage(condition),
    attempts: BigInt(attempts),
    skipped: BigInt(outcomes.get("skipped") ?? 0),
    failures: BigInt(failures),
    outcomes: byCount.map(([outcome, count]) => ({ outcome, count: BigInt(count) })),
    firstContent: toLatencyMessage(firstContent),
    duration: toLatencyMessage(duration),
    lastFailures: lastFailures.map(toFailureMessage),
  };
}

function toFailureMessage({ atMs, upstreamStatus, ...others }: UpstreamFailure) {
  return {
    ...others,
    time: timestampFromMs(atMs),
    ...(upstreamStatus !== undefined && { httpStatusCode: upstreamStatus }),
  };
}

function toBreakerMessage({ rest, nowMs }: Condition): MessageInitShape<typeof BreakerSchema> {
  if (rest === undefined) return { state: BreakerState.CLOSED };
  return {
    state: rest.remainingMs > 0 ? BreakerState.OPEN : BreakerState.HALF_OPEN,
    restStartTime: timestampFromMs(rest.sinceMs),
    restEndTime: timestampFromMs(nowMs + Math.round(rest.remainingMs)),
    probeInFlight: rest.isProbed,
  };
}

function toLatencyMessage(latency: Latency | undefined): MessageInitShape<typeof LatencySchema> {
  return latency === undefined ? {} : { ...latency, count: BigInt(latency.count) };
}
