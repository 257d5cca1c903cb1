import { isRecord } from "../document.ts";
import { MODEL_ID } from "../scalars.ts";
import type { Deployment } from "./deployment.ts";
import type { Part } from "./part.ts";
import type { ProviderEntry } from "./provider.ts";
import type { Remarks } from "./remarks.ts";

/** The sections `providers`, `models` and `aliases` of the result. */
export interface ModelSections {
  readonly providers: Record<string, ProviderEntry>;
  readonly models: Record<string, unknown>;
  readonly aliases: Record<string, string>;
}

/** A provider with these settings, by the name of the one that has them already or a new one. */
export function nameProvider({ providers }: ModelSections, wanted: string, entry: ProviderEntry): string {
  const same = Object.keys(providers).find((name) => JSON.stringify(providers[name]) === JSON.stringify(entry));
  const name = same ?? unused(wanted, providers);
  providers[name] = entry;
  return name;
}

function unused(wanted: string, taken: object): string {
  if (!Object.hasOwn(taken, wanted)) return wanted;
  for (let number = 2; ; number++) if (!Object.hasOwn(taken, `${wanted}-${number}`)) return `${wanted}-${number}`;
}

/** A deployment with its ID among the models of the result. */
interface Placed {
  readonly deployment: Deployment;
  readonly id: string;
}

/** A name of LiteLLM's `model_list` with all its deployments. */
interface Group {
  readonly name: string;
  /** The name in the result. */
  readonly id: string;
  /** Whether the name has targets. */
  readonly isRoute: boolean;
  readonly placed: readonly Placed[];
  /** Names of groups, or IDs of deployments, that are asked when these fail. */
  readonly fallbacks: readonly string[];
}

interface ModelParts {
  readonly deployments: readonly Deployment[];
  /** By names; `*` for all others. */
  readonly fallbacks: ReadonlyMap<string, readonly string[]>;
  /** The part of the file with `routing_strategy`. */
  readonly router: Part;
  readonly sections: ModelSections;
  readonly remarks: Remarks;
}

/** Adds the models of all deployments, and a name with targets for each that has several, or fallbacks. */
export function addModels({ deployments, fallbacks, router, sections, remarks }: ModelParts): void {
  const policy = readPolicy(router, remarks);
  const groups = [...Map.groupBy(deployments, ({ name }) => name)].map(([name, own]): Group => {
    const given = fallbacks.get(name) ?? fallbacks.get("*") ?? [];
    const embeds = own.some(({ isEmbedding }) => isEmbedding);
    const others = embeds ? [] : given.filter((fallback) => fallback !== name);
    const isRoute = (own.length > 1 && !embeds) || others.length > 0;
    const placed = placeAll(own, { isRoute, sections, remarks });
    return { name, id: toId(name), isRoute, fallbacks: others, placed };
  });
  for (const group of groups) {
    const { path } = group.placed[0]!.deployment;
    if (group.isRoute) sections.models[group.id] = toRoute(group, { groups, policy, remarks });
    if (group.id !== group.name)
      remarks.check([...path, "model_name"], `this cannot be an ID; callers write ${group.id}`, group.id);
  }
}

function placeAll(
  deployments: readonly Deployment[],
  { isRoute, sections, remarks }: Pick<ModelParts, "sections" | "remarks"> & { readonly isRoute: boolean },
): Placed[] {
  return deployments.map((deployment, index) => {
    const provider = nameProvider(sections, deployment.providerName, deployment.provider);
    const name = toId(deployment.name);
    const isNamed = !isRoute && index === 0;
    const id = unused(isNamed ? name : `${name}@${provider}`, sections.models);
    sections.models[id] = { provider, ...deployment.model };
    if (!isRoute && index > 0)
      deployment.remarks.lost(
        deployment.path,
        `models of embeddings are not substitutes for each other, so it is ${id}; for several keys write a list of api_keys`,
      );
    remarks.add(deployment.remarks, id);
    return { deployment, id };
  });
}

function toId(name: string): string {
  return MODEL_ID.test(name) ? name : name.replaceAll(/[^A-Za-z0-9._:/@-]/g, "-");
}

type Policy = "weighted" | "least_latency" | "cheapest";

const POLICIES: Readonly<Record<string, Policy>> = {
  "simple-shuffle": "weighted",
  "latency-based-routing": "least_latency",
  "cost-based-routing": "cheapest",
};

function readPolicy(router: Part, remarks: Remarks): Policy {
  const strategy = router.takeText("routing_strategy") ?? "simple-shuffle";
  const policy = Object.hasOwn(POLICIES, strategy) ? POLICIES[strategy]! : "weighted";
  if (!Object.hasOwn(POLICIES, strategy))
    remarks.lost([...router.path, "routing_strategy"], `Parley has no policy like ${strategy}; weighted is used`);
  return policy;
}

interface RouteParts {
  readonly groups: readonly Group[];
  readonly policy: Policy;
  readonly remarks: Remarks;
}

/** Share of a fallback among weighted targets: it is the last one unless the others cannot serve. */
const LEAST_WEIGHT = 0.001;
/** Weight of a deployment without one, large beside that of a fallback. */
const USUAL_WEIGHT = 1_000;
const MAX_WEIGHT = 1_000_000;

function toRoute(group: Group, { groups, policy, remarks }: RouteParts): unknown {
  const { path } = group.placed[0]!.deployment;
  const own = inOrder(group.placed);
  const others = group.fallbacks.flatMap((name) => idsOf(name, { group, groups, remarks }));
  const added = [...new Set(others)].filter((id) => !own.some((placed) => placed.id === id));
  const isOrdered = own.length === 1 || own.some(({ deployment }) => deployment.order !== undefined);
  const orders = own.map(({ deployment }) => deployment.order);
  if (isOrdered && new Set(orders).size < own.length)
    remarks.check(path, `targets of ${group.name} with the same order are asked one after the other`, group.id);
  if (isOrdered) return { targets: [...own.map(({ id }) => id), ...added].map((id) => ({ model: id })) };
  if (policy !== "weighted") {
    if (added.length > 0)
      remarks.check(
        path,
        `${policy} chooses among all targets of ${group.name}, its fallbacks ${added.join(", ")} included`,
        group.id,
      );
    return { targets: [...own.map(({ id }) => id), ...added].map((id) => ({ model: id })), policy };
  }
  remarks.check(
    path,
    `conversations of ${group.name} stay at their target; affinity: false draws for each request`,
    group.id,
  );
  const weights = toWeights(own, group, remarks);
  return {
    targets: [
      ...own.flatMap(({ id }, index) => (weights[index] === 0 ? [] : [{ model: id, weight: weights[index] }])),
      ...added.map((id) => ({ model: id, weight: LEAST_WEIGHT })),
    ],
    policy,
  };
}

/** By `order`, those without one last. */
function inOrder(placed: readonly Placed[]): readonly Placed[] {
  return placed.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function placeOf({ deployment: { order = Number.MAX_SAFE_INTEGER } }: Placed): number {
  return order;
}

/** LiteLLM distributes requests by the first of these that the first deployment has. */
function toWeights(placed: readonly Placed[], { name, id }: Group, remarks: Remarks): readonly number[] {
  const { shares, path } = placed[0]!.deployment;
  const key = (["weight", "rpm", "tpm"] as const).find((one) => shares[one] !== undefined);
  if (key === undefined) return placed.map(() => USUAL_WEIGHT);
  const given = placed.map(({ deployment }) => deployment.shares[key] ?? 0);
  const scale = Math.min(USUAL_WEIGHT, MAX_WEIGHT / Math.max(...given, 1));
  if (given.every((weight) => weight === 0)) return placed.map(() => USUAL_WEIGHT);
  for (const [index, weight] of given.entries())
    if (weight === 0) remarks.check(path, `${placed[index]!.id} has no share, and is no target of ${name}`, id);
  return given.map((weight) => (weight === 0 ? 0 : Math.max(LEAST_WEIGHT, Number((weight * scale).toPrecision(6)))));
}

interface FallbackParts {
  readonly group: Group;
  readonly groups: readonly Group[];
  readonly remarks: Remarks;
}

/** The models of a fallback, which names a group or a deployment. */
function idsOf(name: string, { group, groups, remarks }: FallbackParts): readonly string[] {
  const isUsable = ({ deployment }: Placed): boolean => !deployment.isEmbedding;
  const named = groups.find((other) => other.name === name)?.placed;
  const placed = named ?? groups.flatMap((other) => other.placed.filter(({ deployment }) => deployment.id === name));
  const usable = placed.filter(isUsable);
  if (usable.length === 0)
    remarks.lost(
      group.placed[0]!.deployment.path,
      `${name}, a fallback of ${group.name}, is no converted model that makes completions`,
      group.id,
    );
  return usable.map(({ id }) => id);
}

/** Adds a list such as `[{"a": ["b"]}]`, in which a fallback may also be a map with `model` and fields of its request. */
export function readFallbacks(part: Part, found: Map<string, readonly string[]>, remarks: Remarks): void {
  for (const [index, entry] of part.list("fallbacks").entries()) {
    if (!isRecord(entry)) continue;
    for (const [name, value] of Object.entries(entry)) {
      found.set(name, namesIn(value));
      const items: readonly unknown[] = Array.isArray(value) ? value : [];
      if (items.some((item) => isRecord(item) && Object.keys(item).length > 1))
        remarks.lost([...part.path, "fallbacks", index, name], "a fallback gets the request as it is");
    }
  }
}

/** Names in a list of texts, or of maps with `model`. */
export function namesIn(value: unknown): readonly string[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  return items.map((item) => (isRecord(item) ? item["model"] : item)).filter((item) => typeof item === "string");
}
