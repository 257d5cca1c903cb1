import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** As much of a `.cpuprofile` as is looked at. Times are microseconds of the monotonic clock. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A function as called from one place; its parent is whoever has it among its children. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: readonly number[];
}

/** A part of the busy time, 0 to 1. `self` is time in the code itself. */
export interface Cost {
  readonly name: string;
  readonly self: number;
  /** Also what was called from there, until a nearer place of ours was reached. */
  readonly charged: number;
}

/** Where the time went. */
export interface ProfileSummary {
  readonly busyMs: number;
  /** By place: our layers, packages, Node's own modules, collection and native code. The dearest first. */
  readonly layers: readonly Cost[];
  /** By function, the dearest by their own time first. */
  readonly functions: readonly Cost[];
  /** Functions of ours, the dearest by what is charged to them first. */
  readonly ours: readonly Cost[];
}

interface Place {
  readonly layer: string;
  readonly name: string;
  readonly isOurs: boolean;
}

/** Sums up the samples between two moments. `root` is the project's folder, of which only `src/` counts as ours. */
export function summariseProfile(
  profile: CpuProfile,
  root: string,
  { fromUs, toUs }: { readonly fromUs: number; readonly toUs: number },
): ProfileSummary {
  const parents = new Map<number, ProfileNode>();
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const places = new Map(profile.nodes.map((node) => [node.id, placeOf(node, root)]));

  const layers = new Costs();
  const functions = new Costs();
  const ours = new Costs();
  let atUs = profile.startTime;
  let busyUs = 0;
  profile.samples.forEach((id, index) => {
    // A sample stands for the time until the next one.
    atUs += profile.timeDeltas[index]!;
    const us = profile.timeDeltas[index + 1] ?? 0;
    const place = places.get(id)!;
    if (atUs < fromUs || atUs >= toUs || place.name === "(idle)") return;
    busyUs += us;
    const caller = nearestOfOurs(nodes.get(id), parents, places);
    layers.add(place.layer, { self: us, charged: 0 });
    layers.add(caller?.layer ?? place.layer, { self: 0, charged: us });
    functions.add(place.name, { self: us, charged: 0 });
    if (caller !== undefined) ours.add(caller.name, { self: place === caller ? us : 0, charged: us });
  });
  return {
    busyMs: busyUs / 1000,
    layers: layers.parts(busyUs, "self"),
    functions: functions.parts(busyUs, "self"),
    ours: ours.parts(busyUs, "charged"),
  };
}

function nearestOfOurs(
  node: ProfileNode | undefined,
  parents: ReadonlyMap<number, ProfileNode>,
  places: ReadonlyMap<number, Place>,
): Place | undefined {
  for (let at = node; at !== undefined; at = parents.get(at.id)) {
    const place = places.get(at.id)!;
    if (place.isOurs) return place;
  }
  return undefined;
}

function placeOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode, root: string): Place {
  if (url === "") {
    // What V8 accounts for itself has a name in parentheses, such as "(garbage collector)".
    const layer = functionName.startsWith("(") ? functionName : "(native)";
    return { layer, name: functionName === "" ? "(native)" : functionName, isOurs: false };
  }
  const name = functionName === "" ? "(anonymous)" : functionName;
  const path = url.startsWith("file:") ? relative(root, fileURLToPath(url)).split(sep).join("/") : url;
  const inPackage = /(?:^|\/)node_modules\/(?!.*\/node_modules\/)((@[^/]+\/)?[^/]+)\/(.*)$/.exec(path);
  const file = inPackage === null ? path : `${inPackage[1]}/${inPackage[3]}`;
  const layer = inPackage?.[1] ?? /^(src\/[^/]+|gen|node:[^/]+)/.exec(path)?.[0] ?? path;
  return { layer, name: `${name} ${file}:${lineNumber + 1}`, isOurs: path.startsWith("src/") };
}

class Costs {
  readonly #times = new Map<string, { self: number; charged: number }>();

  add(name: string, { self, charged }: { self: number; charged: number }): void {
    const sum = this.#times.get(name);
    if (sum === undefined) this.#times.set(name, { self, charged });
    else {
      sum.self += self;
      sum.charged += charged;
    }
  }

  parts(totalUs: number, by: "self" | "charged"): readonly Cost[] {
    return [...this.#times]
      .map(([name, { self, charged }]) => ({ name, self: self / totalUs, charged: charged / totalUs }))
      .toSorted((a, b) => b[by] - a[by]);
  }
}
