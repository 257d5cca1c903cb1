import { RouteReason, type RoutePlan } from "../../gen/parley/v1/route_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { firstUnmet, requirementsOf } from "../../src/core/labels.ts";
import type { CompletionRecord } from "../../src/core/ledger.ts";
import { Dice, ExplainedWorld } from "./explained-world.ts";

const REQUESTS_PER_WORLD = 100;

/** What random requests in these worlds showed. */
export interface Agreement {
  /** Where explanation and reality differ, a model without a required label was tried, or an explanation asked a provider. */
  readonly wrong: readonly string[];
  readonly planned: number;
  readonly refused: number;
  readonly fellBack: number;
  /** How often each reason was given. */
  readonly reasons: ReadonlyMap<RouteReason, number>;
}

/** All reasons. */
export const REASONS = Object.values(RouteReason).filter(
  (reason): reason is RouteReason => typeof reason === "number" && reason !== RouteReason.UNSPECIFIED,
);

/** Explains and then runs 100 random requests in each world of these numbers. */
export async function compareWorlds(numbers: readonly number[]): Promise<Agreement> {
  const seen = { planned: 0, refused: 0, fellBack: 0 };
  const reasons = new Map<RouteReason, number>();
  const wrong: string[] = [];
  for (const number of numbers) {
    const world = new ExplainedWorld(number);
    const dice = new Dice(1_000 + number);
    for (let index = 0; index < REQUESTS_PER_WORLD; index++) {
      const note = (problem: string): void => void wrong.push(`world ${number}, request ${index}: ${problem}`);
      const asked = world.draw(dice);
      const before = world.calls;
      const plan = await world.explain(asked);
      if (world.calls !== before) note("a provider was asked");
      const record = await world.run(asked);
      const found = difference(plan, record);
      if (found !== undefined) note(found);
      const required = requirementsOf(asked.principal.requiredLabels, asked.request.requiredLabels);
      for (const id of tried(record)) {
        const unmet = firstUnmet(world.models.find((model) => model.id === id)!.labels, required);
        if (unmet !== undefined) note(`${id} is not of ${unmet.label} ${unmet.values.join(" or ")}`);
      }
      if (plan instanceof Failure) seen.refused += 1;
      else {
        seen.planned += 1;
        if (tried(record).length > 1) seen.fellBack += 1;
        for (const { reason } of [...plan.steps, ...plan.leftOut]) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      }
    }
  }
  return { wrong, ...seen, reasons };
}

/** The models of a record's attempts, without the primary's retry. */
function tried({ attempts }: CompletionRecord): string[] {
  const models = attempts.map(({ model }) => model);
  return models.filter((model, index) => model !== models[index - 1]);
}

/** Where a plan and what then happened differ; undefined where they agree. */
function difference(plan: RoutePlan | Failure, record: CompletionRecord): string | undefined {
  const models = tried(record);
  if (plan instanceof Failure) {
    const isSame = record.failure?.code === plan.code && record.failure.message === plan.message;
    return isSame && models.length === 0 ? undefined : `${plan.code} ${plan.message}, but ${record.outcome}`;
  }
  const planned = plan.steps.map(({ model }) => model);
  if (models.length === 0) return `nothing was tried: ${record.failure?.message}`;
  const isPrefix = models.every((model, index) => model === planned[index]);
  const isEnd = record.outcome === "served" || models.length === planned.length;
  if (!isPrefix || !isEnd) return `${planned.join(" ")}, but ${models.join(" ")}`;
  const refused = new Set(plan.steps.filter(({ refusal }) => refusal !== "").map(({ model }) => model));
  const sent = record.attempts.find(({ model, outcome }) => outcome !== "skipped" && refused.has(model));
  return sent && `${sent.model} was sent what it refuses`;
}
