import type { CompletionChunk, CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Omission, Report } from "../../gen/parley/v1/report_pb.js";
import { toAttemptMessage, toDuration, toTimestamp } from "../core/attempt.ts";
import { AnswerBuilder, toChunk } from "../core/chunks.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { type Model, upstreamKey } from "../core/model.ts";
import type { Answer, EmbeddingAnswer, Emit, SentSize } from "../core/provider.ts";
import type { Route } from "../core/route.ts";
import type { Asked, EmbeddingPlan, Plan, Routed, Router, RouterCall } from "../core/router.ts";
import type { PromptSize } from "../core/token-estimate.ts";
import { type AttemptPorts, AttemptRun, type RunningAttempt, TimeLimit, UnseenAnswer } from "./attempts.ts";
import { Breaker, type BreakerOptions } from "./breaker.ts";
import { explainPlan } from "./explain.ts";
import { type CompletionAttempts, type EmbeddingAttempts, planAttempts, planEmbeddings } from "./plan.ts";
import { type BackoffOptions, RetryBudget } from "./retry-budget.ts";
import { type ExplainedRoute, type RankAsked, type Ranked, Routes } from "./routes.ts";
import type { Opening } from "./upstream-health.ts";
import { UpstreamLoad } from "./upstream-load.ts";

/** As `Config.aliases`. */
export type Aliases = ReadonlyArray<readonly [name: string, model: string]>;

/** What requests may ask for. */
export interface Names {
  readonly models: readonly Model[];
  /** Default: none. */
  readonly routes?: readonly Route[];
  /** Default: none. */
  readonly aliases?: Aliases;
}

/** Models and routes by ID and alias. Immutable: a reload creates a new registry. */
class Registry {
  readonly #models: ReadonlyMap<string, Model | Route>;
  readonly #aliases: Aliases;

  constructor({ models, routes = [], aliases = [] }: Names) {
    this.#models = new Map([...models, ...routes].map((model) => [model.id, model]));
    this.#aliases = aliases;
  }

  find(name: string): Model | Route | undefined {
    return this.#models.get(name) ?? this.#findByAlias(name);
  }

  #findByAlias(name: string): Model | Route | undefined {
    const isAlias = (alias: string): boolean =>
      alias.endsWith("*") ? name.startsWith(alias.slice(0, -1)) : name === alias;
    const found = this.#aliases.find(([alias]) => isAlias(alias));
    return found && this.#models.get(found[1]);
  }

  /** Models, then routes, in the order of the configuration. */
  list(): readonly (Model | Route)[] {
    return [...this.#models.values()];
  }
}

export interface RouterOptions extends Names {
  readonly clock: Clock;
  /** Random number from 0 to 1. */
  readonly random: () => number;
  readonly backoff: BackoffOptions;
  readonly breaker: BreakerOptions;
}

/** Core's router, with the operations of its owner. */
export interface OwnedRouter extends Router {
  /** Replaces the models. Requests in flight keep theirs. Health starts anew, because the cause of failures may be fixed. */
  replace(models: readonly Model[], others?: Omit<Names, "models">): void;
  list(): readonly (Model | Route)[];
  /** Breaker state of each upstream model, by `provider/upstream model`. */
  health(): ReadonlyMap<string, Breaker["state"]>;
  /** The outage of the upstream model of a model; undefined while its breaker is closed. */
  openingOf(model: Model): Opening | undefined;
}

/** Routes by a registry of models, with a breaker per upstream model and a retry budget per provider. */
export function createRouter({ clock, random, backoff, breaker, ...names }: RouterOptions): OwnedRouter {
  let registry = new Registry(names);
  const breakers = new Map<string, Breaker>();
  const budgets = new Map<string, RetryBudget>();
  const loads = new Map<string, UpstreamLoad>();
  const ports: AttemptPorts = {
    clock,
    random,
    backoff,
    breakerOf: (model) => getOrAdd(breakers, upstreamKey(model), () => new Breaker(breaker, clock)),
    budgetOf: (model) => getOrAdd(budgets, model.providerName, () => new RetryBudget()),
    loadOf: (model) => getOrAdd(loads, upstreamKey(model), () => new UpstreamLoad(clock)),
  };
  const routes = new Routes(ports);
  const planOf = (
    request: CompletionRequest,
    candidates: readonly (Model | Route)[],
    asked: Asked & RankAsked,
  ): { readonly ranked: Ranked; readonly attempts: CompletionAttempts } => {
    const ranked = routes.rank(request, candidates, asked);
    const { models, targets, up } = ranked;
    return { ranked, attempts: planAttempts(request, models, { ...asked, targets, up }) };
  };
  return {
    find: (id) => registry.find(id),
    list: () => registry.list(),
    plan: (request, candidates, asked) => new RunnablePlan(planOf(request, candidates, asked).attempts, ports),
    explain(request, candidates, asked) {
      const explained: ExplainedRoute[] = [];
      // All of it is charged by the caller.
      const planned = planOf(request, candidates, { ...asked, share: undefined, explained });
      return explainPlan({ ...planned, candidates, explained, asked }, ports);
    },
    planEmbeddings: (request, model) => toRunnable(planEmbeddings(request, model), ports),

    replace(models, others) {
      registry = new Registry({ models, ...others });
      breakers.clear();
      loads.clear();
    },
    health: () => new Map([...breakers].map(([key, { state }]) => [key, state])),
    openingOf: (model) => breakers.get(upstreamKey(model))?.rest,
  };
}

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
      // The caller gets an estimate. Counts say nothing about the health of completions.
      return undefined;
    } finally {
      limit.close();
    }
  }

  async stream(call: RouterCall, emit: Emit): Promise<void> {
    const run = new AttemptRun(this.#plan, call, this.#ports);
    try {
      for (;;) {
        const attempt = await run.next();
        // After the first content a failure is final.
        let committed = false;
        try {
          const give = ofOurs((batch) => {
            if (committed) return emit(batch);
            committed = true;
            run.committed(attempt);
            return emit([startChunk(call, attempt.model, run.upstreamMs(attempt)), ...batch]);
          });
          const work = attempt.model.provider.stream(attempt.call, whileWanted(attempt, give));
          attempt.work = work;
          await attempt.limit.race(work);
          if (!committed) throw new Failure("upstream_protocol", "The upstream model returned no usable output.");
        } catch (reason) {
          run.failed(attempt, reason, { committed });
          continue;
        } finally {
          attempt.limit.close();
        }
        await emit([reportChunk(run.served(attempt))]);
        return;
      }
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
  fetch: (attempt: RunningAttempt) => Promise<A>,
): Promise<Routed<A>> {
  try {
    for (;;) {
      const attempt = await run.next();
      try {
        const work = fetch(attempt);
        attempt.work = work;
        const answer = await attempt.limit.race(work);
        return { model: attempt.model, answer, report: run.served(attempt) };
      } catch (reason) {
        run.failed(attempt, reason, { committed: false });
      } finally {
        attempt.limit.close();
      }
    }
  } finally {
    run.close();
  }
}

/**
 * The whole answer of one attempt. An answer that is fetched as a stream, because it may take long, is joined here: the limit
 * for the first content ends with the first content, and only the idle limit applies then.
 */
async function fetchAnswer(attempt: RunningAttempt): Promise<Answer> {
  const { model, call, permit, limit, translation } = attempt;
  if (!translation.streamed) return model.provider.create(call);
  const builder = new AnswerBuilder();
  const take = ofOurs((batch) => {
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

/** As `emit`, with internal errors as Failures: a dialect treats any other error as an unreadable answer. */
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
