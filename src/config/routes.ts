import { nearest } from "../encoding/nearest.ts";
import type { Report } from "./config-error.ts";
import type { Hedge, ModelConfig, RouteConfig, TargetConfig } from "./config.ts";
import type { FileInput, HedgeInput, TargetInput } from "./schema.ts";

/** Keys of an entry with targets; all others are facts of its models. */
const KEYS: ReadonlySet<string> = new Set(["description", "created", "targets", "policy", "affinity", "hedge"]);

/** Policies that spread conversations, which affinity keeps together. */
const SPREADING: ReadonlySet<string> = new Set(["weighted", "least_latency"]);

/** Completes the entries of `models` that have targets, and reports mistakes in them. */
export function resolveRoutes(input: FileInput, models: readonly ModelConfig[], report: Report): RouteConfig[] {
  return Object.entries(input.models).flatMap(([id, entry]) => {
    const { targets, policy = "ordered", description = id, created = "1970-01-01" } = entry;
    if (targets === undefined) {
      for (const key of ["policy", "affinity"] as const)
        if (entry[key] !== undefined) report(["models", id, key], "is only for a name with targets");
      return [];
    }
    for (const key of Object.keys(entry))
      if (!KEYS.has(key)) report(["models", id, key], "is not for a name with targets: each target has its own");
    const spreads = SPREADING.has(policy);
    if (!spreads && entry.affinity === true)
      report(["models", id, "affinity"], `has no effect with the policy ${policy}, which spreads no conversations`);
    const affinity = spreads && (entry.affinity ?? true);
    const resolved = targets.map((target, index) => {
      if (target.weight !== undefined && policy !== "weighted" && !affinity)
        report(
          ["models", id, "targets", index, "weight"],
          `has no effect with the policy ${policy}; write policy: weighted`,
        );
      checkTarget(target.model, { path: ["models", id, "targets", index, "model"], input, models, report });
      if (targets.findIndex(({ model }) => model === target.model) < index)
        report(["models", id, "targets", index, "model"], `${target.model} is a target of this name already`);
      return resolveTarget(target, ["models", id, "targets", index], report);
    });
    return [
      {
        id,
        description,
        created: Date.parse(created) / 1000,
        policy,
        affinity,
        hedge: resolveHedge(entry.hedge, ["models", id, "hedge"], report),
        targets: resolved,
      },
    ];
  });
}

/** Sooner than any model answers. */
const LEAST_HEDGE_MS = 50;

/** Second attempts of a model or a name with targets. */
export function resolveHedge(
  hedge: HedgeInput | undefined,
  path: readonly (string | number)[],
  report: Report,
): Hedge | undefined {
  if (hedge === undefined) return undefined;
  const { after, budget } = hedge;
  if (after.startsWith("p")) return { after: { percentile: Number(after.slice(1)) }, budget };
  const ms = after.endsWith("ms") ? Number(after.slice(0, -2)) : Number(after.slice(0, -1)) * 1000;
  if (ms < LEAST_HEDGE_MS) report([...path, "after"], `must be at least ${LEAST_HEDGE_MS}ms`);
  return { after: { ms }, budget };
}

interface TargetParts {
  readonly path: readonly (string | number)[];
  readonly input: FileInput;
  readonly models: readonly ModelConfig[];
  readonly report: Report;
}

function checkTarget(name: string, { path, input, models, report }: TargetParts): void {
  const model = models.find(({ id }) => id === name);
  if (model?.modalities.output.includes("embedding"))
    report(path, `${name} makes embeddings; vectors of different models cannot be compared, so ask for it by its name`);
  if (model !== undefined) return;
  if (input.models[name]?.targets !== undefined) {
    report(path, `${name} has targets itself; write its models here`);
    return;
  }
  // A model with mistakes of its own is reported where they are.
  if (input.models[name] !== undefined) return;
  report(
    path,
    missingModel(
      name,
      models.map(({ id }) => id),
    ),
  );
}

/** Says that there is no model of this name, and which may be meant. */
export function missingModel(name: string, ids: readonly string[]): string {
  const meant = nearest(name, ids);
  return `there is no model ${name}; ${meant === undefined ? "parley models lists them" : `did you mean ${meant}?`}`;
}

function resolveTarget(
  { model, weight = 1, when }: TargetInput,
  path: readonly (string | number)[],
  report: Report,
): TargetConfig {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = when?.prompt_tokens ?? {};
  if (min > max) report([...path, "when", "prompt_tokens", "min"], "must be at most max");
  return {
    model,
    weight,
    when: when && {
      promptTokens: when.prompt_tokens && { min, max },
      modalities: when.modalities,
      tools: when.tools,
      keyTags: when.key_tags,
    },
  };
}
