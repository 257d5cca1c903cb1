import type { Draft } from "./draft.ts";

/** Settings of the playground under a name. Conversations and keys are not part of it. */
export interface Preset extends Pick<Draft, "system" | "parameters" | "tools" | "results" | "fallbacks" | "model"> {
  readonly name: string;
}

export const MAX_PRESETS = 50;

const storedAs = (accountId: string): string => `parley-presets-${accountId}`;

/** Returns the presets that an account has saved in this browser, by name. */
export function readPresets(accountId: string): readonly Preset[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storedAs(accountId)) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isPreset).slice(0, MAX_PRESETS) : [];
  } catch {
    // Storage is not available, or its value is not a list of presets.
    return [];
  }
}

/** Stores presets. False if the browser has no room, or no storage. */
export function storePresets(accountId: string, presets: readonly Preset[]): boolean {
  try {
    localStorage.setItem(storedAs(accountId), JSON.stringify(presets));
    return true;
  } catch {
    return false;
  }
}

/** Returns the presets with another one, which replaces that of the same name. */
export function withPreset(presets: readonly Preset[], added: Preset): readonly Preset[] {
  const others = presets.filter(({ name }) => name !== added.name);
  return [...others, added].toSorted((one, other) => one.name.localeCompare(other.name));
}

function isPreset(value: unknown): value is Preset {
  if (!isObject(value)) return false;
  const { name, model, system, tools, results, fallbacks, parameters } = value;
  return (
    [name, model, system, tools, results].every((each) => typeof each === "string") &&
    Array.isArray(fallbacks) &&
    fallbacks.every((each) => typeof each === "string") &&
    isObject(parameters) &&
    Object.values(parameters).every((each) => typeof each === "string")
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
