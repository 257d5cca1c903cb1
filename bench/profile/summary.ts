import { CostBook, type CostSummary } from "./costs.ts";
import { type CallFrame, type Place, placeOf } from "./place.ts";

/** The used part of a `.cpuprofile`. Times are microseconds of the monotonic clock. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A function as called from one place; its parent is the node that lists it as a child. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly children?: readonly number[];
}

/** Shares of CPU time. */
export interface ProfileSummary extends CostSummary {
  readonly busyMs: number;
}

/** Summarises the samples between two times. `root` is the project's folder; only `src/` counts as Parley's code. */
export function summariseProfile(
  profile: CpuProfile,
  root: string,
  { fromUs, toUs }: { readonly fromUs: number; readonly toUs: number },
): ProfileSummary {
  const parents = new Map<number, ProfileNode>();
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node);
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const places = new Map(profile.nodes.map((node) => [node.id, placeOf(node.callFrame, root)]));

  const book = new CostBook();
  let atUs = profile.startTime;
  profile.samples.forEach((id, index) => {
    // A sample counts for the time until the next one.
    atUs += profile.timeDeltas[index]!;
    const us = profile.timeDeltas[index + 1] ?? 0;
    const place = places.get(id)!;
    if (atUs < fromUs || atUs >= toUs || place.name === "(idle)") return;
    book.add(us, place, nearestOfOurs(nodes.get(id), parents, places));
  });
  return { busyMs: book.total / 1000, ...book.summary() };
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
