import { type AttributionField, ATTRIBUTIONS } from "../format/attribution.ts";
import { keyLabel } from "../format/callers.ts";
import { outcomeOf } from "../format/outcomes.ts";
import type { Grouping } from "./view.ts";

/** Group of refused requests that named no known model. */
export const UNKNOWN_MODEL = "unknown";

/** Display names of the groupings. */
export const GROUPING_NAMES: Readonly<Record<Grouping, string>> = {
  none: "None",
  model: "Model",
  key: "Key",
  account: "Account",
  team: "Team",
  outcome: "Status",
  ...ATTRIBUTIONS,
};

/** Whether the sums of a grouping are of single completions, rather than stored sums. */
export function isAttribution(by: Grouping): by is AttributionField {
  return Object.hasOwn(ATTRIBUTIONS, by);
}

/** Returns the display name of a group. The group with an empty ID holds all others. */
export function groupName(by: Grouping, { group, name }: { readonly group: string; readonly name: string }): string {
  if (group === "")
    return by === "team" ? "No team, or another" : isAttribution(by) ? "None, or another" : "All others";
  if (isAttribution(by)) return group;
  if (by === "outcome") return outcomeOf(group).label;
  if (by === "model") return group === UNKNOWN_MODEL ? "No known model" : group;
  return keyLabel({ keyId: group, keyName: name });
}
