import { describe, expect, it } from "vitest";
import type { OfferedModel } from "../../src/config/imports.ts";
import { parseConfig } from "../../src/config/parse.ts";

const env = { KEY: "k".repeat(40) };
const offered = (...names: readonly string[]): OfferedModel[] =>
  names.map((name) => ({ name, contextWindow: undefined, maxOutputTokens: undefined }));

const PROVIDERS = `providers:
  one: { preset: openai, api_keys: ["\${KEY}"], labels: { region: us } }
  two: { preset: groq, api_keys: ["\${KEY}"] }
  cloud: { preset: azure, base_url: "https://a.openai.azure.com/openai/v1", api_keys: ["\${KEY}"] }
`;
const parse = (models: string, lists: Record<string, readonly OfferedModel[]> = {}) =>
  parseConfig({ file: "parley.yaml", text: `${PROVIDERS}${models}`, env, lists: new Map(Object.entries(lists)) });

describe("models that are imported", () => {
  it("are those of all lists, after those of the file and without what their names are taken for", () => {
    const { models, imports } = parse(
      `models: { "*": import, "gpt-5.1": { provider: two, upstream_model: other }, chat: { targets: [{ model: gpt-5.1 }] } }
aliases: { mine: chat }`,
      { one: offered("gpt-5.1", "gpt-4o", "chat", "mine", "not an ID"), two: offered("gpt-4o", "llama") },
    );
    expect(models.map(({ id, provider, upstreamModel }) => [id, provider, upstreamModel])).toEqual([
      ["gpt-5.1", "two", "other"],
      ["gpt-4o", "one", "gpt-4o"],
      ["llama", "two", "llama"],
    ]);
    expect(imports).toEqual([
      { provider: "one", prefix: "", shadowed: [] },
      { provider: "two", prefix: "", shadowed: ["gpt-4o"] },
    ]);
  });

  it("are without those that an alias in the file stands for by their beginning", () => {
    const { models } = parse(
      `models: { "*": import, "two/*": import, cheap: { provider: two, upstream_model: cheap } }
aliases: { "gemini-*": cheap, "two/g*": cheap }`,
      { one: offered("gemini-3-pro", "gemini", "gpt-4o"), two: offered("gpt-4o", "gemini-3-pro", "llama") },
    );
    expect(models.map(({ id }) => id)).toEqual(["cheap", "gemini", "gpt-4o", "two/llama"]);
  });

  it("have the name of their provider before their own where only it is imported", () => {
    const lists = { one: offered("gpt-4o"), two: offered("gpt-4o", "openai/gpt-oss-120b") };
    const ids = (models: string) => parse(models, lists).models.map(({ id }) => id);
    expect(ids(`models: { "two/*": import }`)).toEqual(["two/gpt-4o", "two/openai/gpt-oss-120b"]);
    expect(ids(`models: { "*": import, "two/*": import }`)).toEqual([
      "gpt-4o",
      "two/gpt-4o",
      "two/openai/gpt-oss-120b",
    ]);
  });

  it("have facts of the provider's list, then of the known models, and a price only where it is known", () => {
    const list = [
      { name: "gpt-5.1", contextWindow: undefined, maxOutputTokens: undefined },
      { name: "secret-1", contextWindow: 64_000, maxOutputTokens: 4_000 },
      { name: "secret-2", contextWindow: 2_000_000_000, maxOutputTokens: undefined },
    ];
    const { models } = parse(`models: { "one/*": import }`, { one: list });
    expect(models).toMatchObject([
      {
        contextWindow: 400_000,
        price: { input: 1_250_000 },
        sources: { contextWindow: "list", maxOutputTokens: "assumed", price: "list" },
        labels: { region: "us" },
      },
      {
        contextWindow: 64_000,
        maxOutputTokens: 4_000,
        defaultMaxTokens: 4_000,
        price: undefined,
        sources: { contextWindow: "provider", maxOutputTokens: "provider", price: undefined },
      },
      { contextWindow: 131_072, sources: { contextWindow: "assumed" } },
    ]);
    expect(models[0]!.capabilities.maxTokensField).toBe("max_completion_tokens");
  });

  it("make what the provider's list says, and are priced where all of it is", () => {
    const list = [
      { ...offered("gpt-4o")[0]!, outputModalities: ["text", "image"] as const },
      { ...offered("gpt-5.1")[0]!, outputModalities: ["text"] as const },
    ];
    const [painter, writer] = parse(`models: { "one/*": import }`, { one: list }).models;
    expect(painter!.modalities.output).toEqual(["text", "image"]);
    expect(painter!.price).toBeUndefined();
    expect(writer!.price).toBeDefined();
  });

  it("are none, and no mistake, as long as no list is known", () => {
    expect(parse(`models: { "*": import }`).models).toEqual([]);
  });

  it("are at most 1,000 of a list", () => {
    const list = offered(...Array.from({ length: 1_200 }, (_, index) => `m-${index}`));
    expect(parse(`models: { "one/*": import }`, { one: list }).models).toHaveLength(1_000);
  });

  it.each([
    [`models: { "three/*": import }`, 'parley.yaml:5:22: models["three/*"]: there is no provider three'],
    [`models: { "cloud/*": import }`, "cloud has no list of models that could be imported"],
    [`models: { "x": import }`, "parley.yaml:5:16: models.x:"],
    [`models: { "*": import, chat: { targets: [{ model: gpt-4o }] } }`, "there is no model gpt-4o"],
  ])("are refused in %s", (models, problem) => {
    expect(() => parse(models, { one: offered("gpt-4o") })).toThrow(problem);
  });
});
