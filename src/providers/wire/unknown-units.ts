import { array, isObject, type Json, number } from "./json.ts";

/** Limits of the number of reported names, which come from the provider, and of their length. */
const MAX_NAMES = 16;
const MAX_NAME_CHARS = 64;

/** Fields with the total cost, which OpenRouter and xAI add to their counts. Source: their documentation of usage, November 2026. */
export const COSTS = ["cost", "cost_details", "cost_in_usd_ticks"] as const;

/**
 * Names of counts above zero, and of non-empty lists, in a provider's usage that are not in `known`. Counts of a nested object are named
 * `object.name`. A provider may bill such counts.
 */
export function unknownUnits(usage: Json, known: ReadonlySet<string>): string[] {
  const found: string[] = [];
  const look = (counts: Json, before: string): void => {
    for (const name in counts) {
      const path = before + name;
      if (found.length === MAX_NAMES || known.has(path)) continue;
      const value = counts[name];
      if (isObject(value) && path.length < MAX_NAME_CHARS) look(value, `${path}.`);
      else if ((number(value) ?? array(value).length) > 0) found.push(path.slice(0, MAX_NAME_CHARS));
    }
  };
  look(usage, "");
  return found;
}
