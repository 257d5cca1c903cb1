import { outcomeOf } from "../format/outcomes.ts";
import type { Grouping } from "./view.ts";

/** What the groupings are called. */
export const GROUPING_NAMES: Readonly<Record<Grouping, string>> = {
  none: "None",
  model: "Model",
  key: "Key",
  account: "Account",
  outcome: "Status",
};

/** What a group is called; the one without a name is all those that there was no room for. */
export function groupName(by: Grouping, { group, name }: { readonly group: string; readonly name: string }): string {
  if (group === "") return "All others";
  return by === "outcome" ? outcomeOf(group).label : name || group;
}
