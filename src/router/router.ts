import type { CompletionChunk, CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Omission, Report } from "../../gen/parley/v1/report_pb.js";
import { toAttemptMessage, toDuration, toTimestamp } from "../core/attempt.ts";
import { AnswerBuilder } from "../core/answer-builder.ts";
import { toChunk } from "../core/chunks.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { HealthNote } from "../core/health-notes.ts";
import { type Model, upstreamKey } from "../core/model.ts";
import { onlyAnswers } from "../core/provider-options.ts";
import type { Answer, EmbeddingAnswer, Emit, SentSize } from "../core/provider.ts";
import { isRoute, type Route } from "../core/route.ts";
import type { Asked, EmbeddingPlan, Plan, Routed, Router, RouterCall } from "../core/router.ts";
import type { PromptSize } from "../core/token-estimate.ts";
import { type AttemptPorts, AttemptRun } from "./attempts.ts";
import { type RunningAttempt, UnseenAnswer } from "./running-attempt.ts";
import { TimeLimit } from "./time-limit.ts";
import { Breaker, type BreakerOptions } from "./breaker.ts";
import { explainPlan } from "./explain.ts";
import { type CompletionAttempts, type EmbeddingAttempts, planAttempts, planEmbeddings } from "./plan.ts";
import { OwnModels } from "./own-models.ts";
import { PerUpstream } from "./per-upstream.ts";
import { type HealthCheck, runCheck } from "./health-check.ts";
import { downElsewhere } from "./health-votes.ts";
import { ContentTimes, type HedgeCounts, Hedging } from "./hedging.ts";
import { type BackoffOptions, RetryBudget, type RetryCounts } from "./retry-budget.ts";
import { type ExplainedRoute, type RankAsked, type Ranked, Routes } from "./routes.ts";
import type { Opening } from "./upstream-health.ts";
import { UpstreamLoad } from "./upstream-load.ts";

/** The type of `Config.aliases`. */
type Aliases = ReadonlyArray<readonly [name: string, model: string]>;

/** Models, routes and aliases that requests may name. */
interface Names {
  readonly models: readonly Model[];
  /** Default: none. */
  readonly routes?: readonly Route[];
  /** Default: none. */
  readonly aliases?: Aliases;
}

/** Models and routes by ID and alias. Immutable: a reload creates a new registry. */
class Registry {
  readonly #models: ReadonlyMap<string, Model | Route>;
  readonly #list: readonly (Model | Route)[];
  readonly #aliases: Aliases;

  constructor({ models, routes = [], aliases = [] }: Names) {
    this.#models = new Map([...models, ...routes].map((model) => [model.id, model]));
    this.#list = [...this.#models.values()];
    this.#aliases = aliases;
  }

  find(name: string, accountAliases: Aliases = []): Model | Route | undefined {
    return this.#models.get(name) ?? this.#findByAlias(name, accountAliases) ?? this.#findByAlias(name, this.#aliases);
  }

  #findByAlias(name: string, aliases: Aliases): Model | Route | undefined {
    const isAlias = (alias: string): boolean =>
      alias.endsWith("*") ? name.startsWith(alias.slice(0, -1)) : name === alias;
    const found = aliases.find(([alias]) => isAlias(alias));
    return found && this.#models.get(found[1]);
  }

  /** Models, then routes, in the order of the configuration. */
  list(): readonly (Model | Route)[] {
    return this.#list;
  }
}

/** Settings that a reload may change, beside models, routes and aliases. */
interface RouterSettings {
  readonly backoff: BackoffOptions;
  readonly breaker: BreakerOptions;
}

export interface RouterOptions extends Names, RouterSettings {
  readonly clock: Clock;
  /** Random number from 0 to 1. */
  readonly random: () => number;
}

/** Core's router, with the operations of its owner. */
export interface OwnedRouter extends Router {
  /**
   * Replaces the models, and the settings that are given. Requests in flight keep their models and their backoff. Health state is
   * reset, because the reload may have fixed the cause of failures, except for models for which `keepsHealth` returns true (default:
   * none).
   */
  replace(
    models: readonly Model[],
    others?: Omit<Names, "models"> & Partial<RouterSettings> & { readonly keepsHealth?: (model: Model) => boolean },
  ): void;
  list(): readonly (Model | Route)[];
  /** Breaker state of each upstream model, by `provider/upstream model`. */
  health(): ReadonlyMap<string, Breaker["state"]>;
  /** This process's note for the others. Undefined without routes, because notes only change the order of their targets. */
  healthNote(): HealthNote | undefined;
  /** Passes over the models that the notes of other processes vote down (`health-votes.ts`). Replaces earlier notes. */
  heed(others: readonly HealthNote[]): void;
  /** IDs of the targets that are passed over as outliers, by route. */
  outliers(): ReadonlyMap<string, readonly string[]>;
  /**
   * Checks the upstream model of a model with a call of no account. The check is due if the breaker is half-open, or if it is closed
   * and the model has had no call for `idleMs`. Resolves with whether the check passed; undefined when it was not due, or its outcome
   * does not show the model's health. Never rejects.
   */
  check(model: Model, check: HealthCheck): Promise<boolean | undefined>;
  /** Counts of hedges by requested name, without names that were never hedged. */
  hedges(): ReadonlyMap<string, HedgeCounts>;
  /** Counts of the retry budgets by provider name, without providers that were never called. */
  retries(): ReadonlyMap<string, RetryCounts>;
  /** The outage of the upstream model of a model; undefined while its breaker is closed. */
  openingOf(model: Model): Opening | undefined;
  /** Outages of all upstream models whose breaker is not closed, by `provider/upstream model`. */
  openings(): ReadonlyMap<string, Opening>;
}

/** Routes by a registry of models, with a breaker per upstream model and a retry budget per provider. */
export function createRouter({ clock, random, backoff, breaker, ...names }: RouterOptions): OwnedRouter {
  let registry = new Registry(names);
  let settings: RouterSettings = { backoff, breaker };
  const ownModels = new OwnModels();
  const breakers = new PerUpstream<Breaker>();
  const budgets = new PerUpstream<RetryBudget>();
  const loads = new PerUpstream<UpstreamLoad>();
  const contentTimes = new PerUpstream<ContentTimes>();
  const hedgings = new Map<string, Hedging>();
  const ports: AttemptPorts = {
    clock,
    random,
    backoff: () => settings.backoff,
    breakerOf: (model) =>
      breakers.getOrAdd(model, upstreamKey(model), () => new Breaker(() => settings.breaker, clock)),
    budgetOf: (model) => budgets.getOrAdd(model, model.ownCredential ?? model.providerName, () => new RetryBudget()),
    loadOf: (model) => loads.getOrAdd(model, upstreamKey(model), () => new UpstreamLoad(clock)),
    hedgingOf: (name) => getOrAdd(hedgings, name, () => new Hedging()),
    contentTimesOf: (model, streamed) =>
      contentTimes.getOrAdd(model, contentKey(model, streamed), () => new ContentTimes()),
  };
  const routes = new Routes(ports);
  const planOf = (
    request: CompletionRequest,
    candidates: readonly (Model | Route)[],
    asked: Asked & RankAsked,
  ): { readonly ranked: Ranked; readonly attempts: CompletionAttempts } => {
    const ranked = routes.rank(request, candidates, asked);
    const { models, targets, up } = ranked;
    const attempts = planAttempts(request, models, { ...asked, targets, up });
    const [{ id: name, hedge }] = candidates as [Model | Route];
    const isHedged = hedge !== undefined && onlyAnswers(request, asked);
    return { ranked, attempts: isHedged ? { ...attempts, hedge: { ...hedge, name } } : attempts };
  };
  return {
    find(name, caller) {
      const routing = caller?.routing;
      const found = registry.find(name, routing?.aliases);
      if (found === undefined || routing === undefined || routing.credentials.size === 0) return found;
      return ownModels.of(found, { accountId: caller!.accountId, credentials: routing.credentials });
    },
    list: () => registry.list(),
    plan: (request, candidates, asked) => new RunnablePlan(planOf(request, candidates, asked).attempts, ports),
    explain(request, candidates, asked) {
      const explained: ExplainedRoute[] = [];
      // Without a share: the caller of `explain` charges the whole work.
      const planned = planOf(request, candidates, { ...asked, share: undefined, explained });
      return explainPlan({ ...planned, candidates, explained, asked }, ports);
    },
    planEmbeddings: (request, candidates) => toRunnable(planEmbeddings(request, candidates), ports),

    replace(models, { keepsHealth = () => false, ...others } = {}) {
      const before = registry.list().filter(isRoute);
      registry = new Registry({ models, ...others });
      settings = { backoff: others.backoff ?? settings.backoff, breaker: others.breaker ?? settings.breaker };
      const kept = new Set(
        models
          .filter(keepsHealth)
          .flatMap((model) => [upstreamKey(model), contentKey(model, true), contentKey(model, false)]),
      );
      for (const known of [breakers, loads, contentTimes]) known.keepOnly(kept);
      if (kept.size > 0) routes.inherit(before, registry.list().filter(isRoute), kept);
    },
    health: () => new Map([...breakers.shared].map(([key, { state }]) => [key, state])),
    healthNote() {
      if (!registry.list().some(isRoute)) return undefined;
      const known = [...breakers.shared];
      const sinceMs = clock.monotonic() - SERVED_MS;
      const served = known.flatMap(([key, { state, servedAtMs = -Infinity }]) =>
        state === "closed" && servedAtMs > sinceMs ? [{ key, servedAtMs }] : [],
      );
      return {
        down: known.flatMap(([key, { state }]) => (state === "open" ? [key] : [])),
        // The latest first, because `writeHealthNote` cuts the list at its limit.
        up: served.toSorted((one, other) => other.servedAtMs - one.servedAtMs).map(({ key }) => key),
      };
    },
    heed(others) {
      const own = this.healthNote();
      routes.downElsewhere = own === undefined ? new Set() : downElsewhere(others, own);
    },
    check: (model, check) => runCheck(model, check, ports),
    outliers: () =>
      new Map(registry.list().flatMap((each) => (isRoute(each) ? [[each.id, routes.outliersOf(each)] as const] : []))),
    hedges: () => new Map([...hedgings].map(([name, { counts }]) => [name, counts])),
    retries: () => new Map([...budgets.shared].map(([name, { counts }]) => [name, counts])),
    openingOf: (model) => breakers.shared.get(upstreamKey(model))?.opening,
    openings: () =>
      new Map([...breakers.shared].flatMap(([key, { opening }]) => (opening === undefined ? [] : [[key, opening]]))),
  };
}

function contentKey(model: Model, streamed: boolean): string {
  return `${upstreamKey(model)} ${streamed ? "streamed" : "whole"}`;
}

/** Time after a success in which the health note lists its model as up. */
const SERVED_MS = 10_000;

/** Time limit of a provider's count. */
const COUNT_LIMIT_MS = 5_000;

/** A plan that runs with its router's breakers and retry budgets. */
class RunnablePlan implements Plan {
  readonly #plan: CompletionAttempts;
  readonly #ports: AttemptPorts;

  constructor(plan: CompletionAttempts, ports: AttemptPorts) {
    this.#plan = plan;
    this.#ports = ports;
  }

  get prompt(): PromptSize {
    return this.#plan.prompt;
  }

  get candidates(): readonly Model[] {
    return this.#plan.candidates;
  }

  get omitted(): readonly Omission[] {
    return this.#plan.primary.omitted;
  }

  get sent(): SentSize {
    return this.#plan.primary.sent;
  }

  create(call: RouterCall): Promise<Routed> {
    return runWhole(new AttemptRun(this.#plan, call, this.#ports), fetchAnswer);
  }

  async count(asked: Parameters<Plan["count"]>[0]): Promise<number | undefined> {
    const { signal, keyFamilyId, accountId, hops } = asked;
    const { candidates, primary: translation } = this.#plan;
    const [model] = candidates as readonly [Model];
    const { provider, upstream, timeouts } = model;
    if (provider.count === undefined || !this.#ports.breakerOf(model).mayAdmit(accountId)) return undefined;
    const limit = new TimeLimit(signal, this.#ports.clock);
    limit.start(COUNT_LIMIT_MS, "The provider did not count in time.");
    const { idleMs } = timeouts;
    try {
      const call = { model: upstream, translation, signal: limit.signal, idleMs, keyFamilyId, accountId, hops };
      return await limit.race(provider.count(call));
    } catch {
      signal.throwIfAborted();
      // The caller gets an estimate. A failed count does not count against the health of completions.
      return undefined;
    } finally {
      limit.close();
    }
  }

  async stream(call: RouterCall, emit: Emit): Promise<void> {
    const run = new AttemptRun(this.#plan, call, this.#ports);
    try {
      const { attempt } = await untilAnswered(run, (running) => {
        const give = ofOurs((batch) => {
          if (running.committed) return emit(batch);
          run.committed(running);
          return emit([startChunk(call, running.model, run.upstreamMs()), ...batch]);
        });
        const work = running.model.provider.stream(running.call, whileWanted(running, give));
        running.work = work;
        return running.limit.race(work);
      });
      await emit([reportChunk(run.served(attempt))]);
    } finally {
      run.close();
    }
  }
}

/** A plan of embeddings that runs with its router's breakers and retry budgets. */
function toRunnable(plan: EmbeddingAttempts, ports: AttemptPorts): EmbeddingPlan {
  const { candidates, inputs, primary } = plan;
  return {
    candidates,
    sent: primary.sent,
    create: (call) =>
      runWhole(new AttemptRun(plan, call, ports), ({ model, call: asked }) =>
        model.provider.embeddings!.create(asked, inputs),
      ),
  };
}

/** Makes attempts until one returns a whole answer. */
async function runWhole<A extends Answer | EmbeddingAnswer>(
  run: AttemptRun,
  fetch: (attempt: RunningAttempt, run: AttemptRun) => Promise<A>,
): Promise<Routed<A>> {
  try {
    const { attempt, result } = await untilAnswered(run, (running) => {
      const work = fetch(running, run);
      running.work = work;
      return running.limit.race(work);
    });
    return { model: attempt.model, answer: result, report: run.served(attempt) };
  } finally {
    run.close();
  }
}

interface Answered<T> {
  readonly attempt: RunningAttempt;
  readonly result: T;
}

/** Makes attempts until one has answered. Throws the final failure. */
async function untilAnswered<T>(
  run: AttemptRun,
  perform: (attempt: RunningAttempt) => Promise<T>,
): Promise<Answered<T>> {
  for (;;) {
    const attempt = await run.next();
    const answered = await (run.isHedged(attempt) ? hedged : settle)(run, attempt, perform);
    if (answered !== undefined) return answered;
  }
}

/** Performs one attempt. Resolves with undefined when it fails and another one may follow; throws the final failure. */
async function settle<T>(
  run: AttemptRun,
  attempt: RunningAttempt,
  perform: (attempt: RunningAttempt) => Promise<T>,
): Promise<Answered<T> | undefined> {
  try {
    const result = await perform(attempt);
    run.answered(attempt);
    return { attempt, result };
  } catch (reason) {
    run.failed(attempt, reason);
    return undefined;
  } finally {
    attempt.limit.close();
  }
}

/** As `settle`, for the first attempt and its hedge, if one starts. The first of the two with content ends the other at once. */
async function hedged<T>(
  run: AttemptRun,
  first: RunningAttempt,
  perform: (attempt: RunningAttempt) => Promise<T>,
): Promise<Answered<T> | undefined> {
  const both = await Promise.allSettled([
    settle(run, first, perform),
    run.hedge(first).then((attempt) => attempt && settle(run, attempt, perform)),
  ]);
  const [answered] = both.flatMap((each) => (each.status === "fulfilled" ? (each.value ?? []) : []));
  const failed = both.find((each) => each.status === "rejected");
  if (answered === undefined && failed !== undefined) throw failed.reason;
  return answered;
}

/**
 * Returns the whole answer of one attempt. A long answer is fetched as a stream and joined here. Its first content ends the
 * limit for the first content; after that only the idle limit applies.
 */
async function fetchAnswer(attempt: RunningAttempt, run: AttemptRun): Promise<Answer> {
  const { model, call, permit, limit, translation } = attempt;
  if (!translation.streamed) return model.provider.create(call);
  call.share?.keepAnswers();
  const builder = new AnswerBuilder();
  const take = ofOurs((batch) => {
    run.won(attempt);
    limit.stop();
    permit.committed();
    for (const chunk of batch) builder.add(chunk);
    (attempt.unseen ??= new UnseenAnswer()).add(batch);
    return undefined;
  });
  await model.provider.stream(call, whileWanted(attempt, take));
  return builder.build();
}

/**
 * Emits batches while the attempt's answer is wanted. Later batches are measured and dropped, without back-pressure.
 */
function whileWanted(attempt: RunningAttempt, emit: Emit): Emit {
  const { limit } = attempt;
  return (batch) => {
    if (!limit.isOver) {
      try {
        const room = emit(batch);
        return room && limit.unlessOver(room);
      } catch (reason) {
        if (!limit.isOver) throw reason;
        return undefined;
      }
    }
    (attempt.unseen ??= new UnseenAnswer()).add(batch);
    return undefined;
  };
}

/** Wraps `emit` so that it throws only Failures: a dialect treats any other error as an unreadable answer. */
function ofOurs(emit: Emit): Emit {
  const fail = (reason: unknown): never => {
    throw Failure.from(reason);
  };
  return (batch) => {
    try {
      return emit(batch)?.catch(fail);
    } catch (reason) {
      return fail(reason);
    }
  };
}

function startChunk(
  { completionId, created, attempts }: RouterCall,
  model: Model,
  upstreamMs: number,
): CompletionChunk {
  return toChunk({
    case: "start",
    value: {
      $typeName: "parley.v1.CompletionStart",
      id: completionId,
      createTime: toTimestamp(created),
      model: model.id,
      attempts: attempts.map(toAttemptMessage),
      upstreamDuration: toDuration(upstreamMs),
    },
  });
}

function reportChunk(report: Report): CompletionChunk {
  return toChunk({ case: "report", value: report });
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}
