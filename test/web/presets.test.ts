import { afterEach, describe, expect, it, vi } from "vitest";
import { readPresets, storePresets, withPreset } from "../../web/playground/preset-store.ts";

const PRESET = {
  name: "brief",
  model: "words",
  system: "Be brief.",
  tools: "",
  results: "",
  fallbacks: ["other"],
  parameters: {},
};

/** A storage of a browser. */
function withStorage(): Map<string, string> {
  const stored = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => void stored.set(key, value),
  });
  return stored;
}

afterEach(() => vi.unstubAllGlobals());

describe("presets", () => {
  it("are kept for an account", () => {
    withStorage();
    expect(storePresets("acct_1", [PRESET])).toBe(true);
    expect(readPresets("acct_1")).toEqual([PRESET]);
    expect(readPresets("acct_2")).toEqual([]);
  });

  it.each(["no JSON", "{}", '[{"name":"x"}]', `[${JSON.stringify({ ...PRESET, parameters: { temperature: 1 } })}]`])(
    "that are not such are left out: %s",
    (text) => {
      withStorage().set("parley-presets-acct_1", text);
      expect(readPresets("acct_1")).toEqual([]);
    },
  );

  it("are in the order of their names, each once", () => {
    const both = withPreset([PRESET], { ...PRESET, name: "a" });
    expect(withPreset(both, { ...PRESET, model: "new" }).map(({ name, model }) => [name, model])).toEqual([
      ["a", "words"],
      ["brief", "new"],
    ]);
  });

  it("cannot be stored without a storage", () => {
    vi.stubGlobal("localStorage", undefined);
    expect(storePresets("acct_1", [PRESET])).toBe(false);
    expect(readPresets("acct_1")).toEqual([]);
  });
});
