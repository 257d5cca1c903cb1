import { clone, create } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { LabelRequirementsSchema } from "../../gen/parley/v1/label_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ClampSchema, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import type { RoutePlan } from "../../gen/parley/v1/route_pb.js";
import { ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { type KeyPrincipal, permit } from "../../src/access/principal.ts";
import { createCompletions, type OwnedCompletions } from "../../src/core/completions.ts";
import { Failure, invalidField } from "../../src/core/failure.ts";
import type { CompletionRecord } from "../../src/core/ledger.ts";
import type { Model } from "../../src/core/model.ts";
import { omission } from "../../src/core/provider-options.ts";
import type { Translation, UpstreamModel } from "../../src/core/provider.ts";
import { createRoute, type RoutePolicy, type TargetCondition } from "../../src/core/route.ts";
import type { Mode } from "../../src/core/router.ts";
import { createRouter, type OwnedRouter } from "../../src/router/router.ts";
import { callOf, memoryLedger, notingLimiter, seal, somebody } from "../support/core-ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { toPrice } from "../support/prices.ts";
import { modelOf, type Script, ScriptedProvider } from "../support/scripted-provider.ts";
import { serves } from "./routed.ts";
import { seeded } from "./route-simulation.ts";

const POLICIES: readonly RoutePolicy[] = ["ordered", "weighted", "least_latency", "cheapest"];
const REGIONS = ["eu", "us", "ch"];
const RETENTIONS = ["none", "30d"];
const TAGS = ["batch", "premium"];
const DOWN = new Failure("upstream_unavailable", "The upstream provider is down.");

/** Random choices. */
export class Dice {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  below(end: number): number {
    return Math.floor(this.random() * end);
  }

  chance(percent: number): boolean {
    return this.random() * 100 < percent;
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }

  /** Each with this chance. */
  some<T>(of: readonly T[], percent: number): T[] {
    return of.filter(() => this.chance(percent));
  }
}

/** Loses what the model lacks, and refuses tools where it has none. */
class LosingProvider extends ScriptedProvider {
  override translate(request: CompletionRequest, model: UpstreamModel): Translation {
    const { seed, tools, maxTemperature } = model.capabilities;
    if (request.tools.length > 0 && !tools) throw invalidField("tools", `must be empty for ${model.name}`);
    const { temperature = 0 } = request;
    return {
      ...super.translate(request, model),
      omitted: request.seed !== undefined && !seed ? [omission("seed", OmissionReason.UNSUPPORTED)] : [],
      clamped: temperature > maxTemperature ? [create(ClampSchema, { field: "temperature" })] : [],
    };
  }
}

/** A router of random models and names, with core over it. */
export class ExplainedWorld {
  readonly clock = new FakeClock();
  readonly models: readonly Model[];
  readonly router: OwnedRouter;
  readonly #provider: LosingProvider;
  readonly #completions: OwnedCompletions;
  readonly #records: CompletionRecord[] = [];
  readonly #names: readonly string[];
  /** State of the router's random numbers. */
  #draws = 0;
  readonly #seed: number;

  constructor(seed: number) {
    const dice = new Dice(seed);
    this.#seed = seed;
    const ids = Array.from({ length: 10 }, (_, index) => `m${index}`);
    this.#provider = new LosingProvider(this.clock, scriptsOf(ids, dice));
    this.models = ids.map((id) => drawModel(id, this.#provider, dice));
    const routes = Array.from({ length: 4 }, (_, index) =>
      createRoute({
        id: `pool${index}`,
        description: "",
        created: 0,
        policy: POLICIES[index]!,
        affinity: dice.chance(50),
        targets: dice.some(this.models, 70).map((model) => ({
          model,
          weight: 1 + dice.below(3),
          when: dice.chance(25) ? drawCondition(dice) : undefined,
        })),
      }),
    ).filter(({ targets }) => targets.length > 0);
    const aliases = [
      ["alias", "m0"],
      ["claude-*", routes[0]?.id ?? "m1"],
    ] as const;
    this.#names = [...ids, ...routes.flatMap(({ id }) => [id, id, id, id]), "alias", "claude-3"];
    this.router = createRouter({
      models: this.models,
      routes,
      aliases,
      clock: this.clock,
      random: () => this.#draw(),
      backoff: { baseMs: 10, capMs: 20 },
      breaker: { failures: 2, openMs: 3_000, maxOpenMs: 10_000 },
    });
    this.#completions = createCompletions({
      router: this.router,
      permit,
      limiter: notingLimiter().limiter,
      ledger: memoryLedger().ledger,
      seal,
      recorder: { record: (entry) => void this.#records.push(entry) },
      clock: this.clock,
    });
  }

  get calls(): number {
    return this.#provider.calls.length;
  }

  /** A random request of a random key. */
  draw(dice: Dice): { request: CompletionRequest; principal: KeyPrincipal; mode: Mode } {
    const text = dice.one(["hi", "How long is a day?", "word ".repeat(600)]);
    const request = create(CompletionRequestSchema, {
      model: dice.one(this.#names),
      fallbackModels: dice.chance(40) ? [dice.one(this.#names), dice.one(this.#names)] : [],
      messages: [create(MessageSchema, { role: Role.USER, parts: [{ kind: { case: "text", value: text } }] })],
      sessionId: `session ${dice.below(20)}`,
      strict: dice.chance(20),
      ...(dice.chance(30) && { seed: 1n }),
      ...(dice.chance(30) && { temperature: 1.5 }),
      ...(dice.chance(30) && { tools: [create(ToolSchema, { kind: { case: "custom", value: { name: "look" } } })] }),
      ...(dice.chance(20) && {
        requiredLabels: create(LabelRequirementsSchema, {
          regions: dice.some(REGIONS, 60),
          retentions: dice.some(RETENTIONS, 40),
        }),
      }),
    });
    const principal: KeyPrincipal = {
      ...somebody,
      keyFamilyId: `key_${dice.below(3)}`,
      accountId: `acct_${dice.below(2)}`,
      tags: new Set(dice.some(TAGS, 40)),
      requiredLabels: dice.chance(30) ? { region: dice.some(REGIONS, 60) } : undefined,
      models: dice.chance(5) ? new Set(["m1", "pool1"]) : undefined,
    };
    return { request, principal, mode: dice.chance(50) ? "stream" : "whole" };
  }

  /** The explanation of a request, which draws no random number. */
  async explain({ request, principal, mode }: ReturnType<ExplainedWorld["draw"]>): Promise<RoutePlan | Failure> {
    const before = this.#draws;
    try {
      return await this.#completions.explain(clone(CompletionRequestSchema, request), this.#callOf(principal), mode);
    } catch (reason) {
      return Failure.from(reason);
    } finally {
      this.#draws = before;
    }
  }

  /** Runs a request. Returns its record. */
  async run({ request, principal, mode }: ReturnType<ExplainedWorld["draw"]>): Promise<CompletionRecord> {
    const asked = clone(CompletionRequestSchema, request);
    const call = this.#callOf(principal);
    const work =
      mode === "whole" ? this.#completions.create(asked, call) : this.#completions.stream(asked, call, () => undefined);
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    await this.clock.drive(settled);
    return this.#records.at(-1)!;
  }

  #callOf(principal: KeyPrincipal) {
    return callOf({ principal, signal: new AbortController().signal, arrivedMs: this.clock.monotonic() });
  }

  #draw(): number {
    this.#draws += 1;
    return seeded(this.#seed * 10_000 + this.#draws)();
  }
}

function scriptsOf(ids: readonly string[], dice: Dice): Record<string, readonly Script[]> {
  return Object.fromEntries(
    ids.map((id) => {
      const failing = dice.one([0, 0, 10, 50, 100]);
      const pauseMs = 10 + dice.below(300);
      const scripts = Array.from({ length: 40 }, (): Script =>
        dice.chance(failing) ? { ending: DOWN } : { ...serves("hi"), pauseMs },
      );
      return [`${id}-upstream`, scripts];
    }),
  );
}

function drawModel(id: string, provider: ScriptedProvider, dice: Dice): Model {
  const input = dice.below(10) * 1_000_000;
  return modelOf(id, provider, {
    labels: {
      ...(dice.chance(80) && { region: dice.one(REGIONS) }),
      ...(dice.chance(60) && { retention: dice.one(RETENTIONS) }),
    },
    ...(dice.chance(80) && { price: toPrice({ input, output: 2 * input, cachedInput: input, imageOutput: 0 }) }),
    capabilities: {
      seed: dice.chance(60),
      tools: dice.chance(80),
      maxTemperature: dice.one([1, 2]),
    },
  });
}

function drawCondition(dice: Dice): TargetCondition {
  return {
    promptTokens: dice.chance(30) ? { min: dice.one([0, 500]), max: dice.one([550, 1e9]) } : undefined,
    modalities: dice.chance(10) ? new Set([Modality.IMAGE]) : undefined,
    tools: dice.chance(30) ? dice.chance(50) : undefined,
    keyTags: dice.chance(40) ? new Set([dice.one(TAGS)]) : undefined,
  };
}
