import { array, isObject, type Json, number } from "./json.ts";

/** Names that are reported, and their length: they come from the provider. */
const MAX_NAMES = 16;
const MAX_NAME_CHARS = 64;

/** What the whole cost: OpenRouter and xAI add it to their counts. Source: their documentation of usage, November 2026. */
export const COSTS = ["cost", "cost_details", "cost_in_usd_ticks"] as const;

/**
 * Names of counts above zero, and of lists with entries, in a provider's usage that are not among `known`; those of an object in it as
 * `object.name`. A provider may bill what they count.
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
