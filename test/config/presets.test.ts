import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { type Preset, PRESET_NAMES, type PresetName, PRESETS } from "../../src/config/presets.ts";

const KEY = "k".repeat(40);

function load(providers: object, models: object, env: Readonly<Record<string, string>> = {}): Config {
  return parseConfig({ file: "parley.yaml", text: JSON.stringify({ providers, models }), env });
}

function refusalOf(work: () => unknown): string {
  try {
    work();
  } catch (reason) {
    return (reason as Error).message;
  }
  return "accepted";
}

const documented = readFileSync(join(import.meta.dirname, "../../docs/configuration.md"), "utf8");

/** Those of hosts, which need settings of their own, are in hosts.test.ts. */
const isComplete = (name: PresetName): boolean => (PRESETS[name] as Preset).host === undefined;

describe.each(PRESET_NAMES.filter(isComplete))("the preset %s", (name) => {
  const { dialect, baseUrl, credential, isLocal = false, capabilities = {} }: Preset = PRESETS[name];
  const model = { m: { provider: "p", upstream_model: "m-1" } };

  it("is a complete provider", () => {
    const config = load({ p: { preset: name } }, model, credential === undefined ? {} : { [credential]: KEY });
    expect(config.providers).toMatchObject([
      { name: "p", dialect, baseUrl, apiKeys: credential === undefined ? [] : [KEY], allowPrivate: isLocal },
    ]);
    const camel = Object.fromEntries(
      Object.entries(capabilities).map(([key, value]) => [
        key.replace(/_(.)/g, (_, next: string) => next.toUpperCase()),
        value,
      ]),
    );
    expect(config.models.find(({ id }) => id === "m")!.capabilities).toMatchObject(camel);
  });

  it("is documented with its address and credential", () => {
    const shown = credential === undefined ? "none" : `\`${credential}\``;
    expect(documented).toContain(`| \`${name}\` | \`${dialect}\` | \`${baseUrl}\` | ${shown} |`);
  });
});

describe("a provider with a preset", () => {
  it("may set anything beside it", () => {
    const own = { preset: "groq", base_url: "https://relay.example/v1", api_keys: [KEY] };
    const capabilities = { logprobs: true };
    const config = load({ p: own }, { m: { provider: "p", upstream_model: "m-1", capabilities } });
    expect(config.providers).toMatchObject([{ baseUrl: "https://relay.example/v1", apiKeys: [KEY] }]);
    expect(config.models.at(-1)!.capabilities).toMatchObject({ logprobs: true, multipleChoices: false });
  });

  it("may speak the host's other dialect, at its address, with its credential and prices", () => {
    const model = { provider: "p", upstream_model: "gpt-5" };
    const provider = { preset: "openai", dialect: "openai-responses" };
    const { providers, models } = load({ p: provider }, { m: model }, { OPENAI_API_KEY: KEY });
    expect(providers).toMatchObject([
      { dialect: "openai-responses", baseUrl: "https://api.openai.com/v1", apiKeys: [KEY] },
    ]);
    expect(models.at(-1)).toMatchObject({
      price: { input: 1_250_000, output: 10_000_000 },
      capabilities: { reasoning: "level", multipleChoices: false, seed: false },
    });
  });

  it("has the speed of its host, for completions without a count", () => {
    const models = { m: { provider: "p", upstream_model: "m-1" } };
    const speedOf = (preset: PresetName, more: object = {}) =>
      load({ p: { preset, api_keys: [KEY] } }, { m: { ...models.m, ...more } }).models.at(-1)!.maxTokensPerSecond;
    expect([speedOf("groq"), speedOf("cerebras"), speedOf("cerebras", { max_tokens_per_second: 7 })]).toEqual([
      1_000, 5_000, 7,
    ]);
  });

  it("is known to generate on after a connection is closed where its host is", () => {
    const runOn = PRESET_NAMES.filter((name) => (PRESETS[name] as Preset).billsClosedStreams === true);
    expect(runOn).toEqual([
      "gemini",
      "bedrock",
      "vertex",
      "openrouter",
      "groq",
      "mistral",
      "perplexity",
      "huggingface",
    ]);
    const billsClosedStreams = (provider: object): boolean =>
      load({ p: { ...provider, api_keys: [KEY] } }, { m: { provider: "p", upstream_model: "m-1" } }).models.at(-1)!
        .billsClosedStreams;
    expect([
      billsClosedStreams({ preset: "groq" }),
      billsClosedStreams({ preset: "bedrock", region: "us-east-1" }),
    ]).toEqual([true, true]);
    const dialects = ["anthropic", "bedrock-converse", "gemini", "openai", "openai-responses"];
    expect(dialects.filter((dialect) => billsClosedStreams({ dialect }))).toEqual(["bedrock-converse", "gemini"]);
  });

  it("has the facts of its host without its name too", () => {
    const modelOf = (provider: object) =>
      load({ p: { ...provider, api_keys: [KEY] } }, { m: { provider: "p", upstream_model: "m-1" } }).models.at(-1)!;
    expect(modelOf({ dialect: "openai", base_url: "https://api.groq.com/openai/v1" }).billsClosedStreams).toBe(true);
    const bedrock = { dialect: "anthropic", host: "bedrock", region: "us-east-1" };
    expect(modelOf(bedrock).billsClosedStreams).toBe(true);
    const renamed = { preset: "openai", base_url: "https://openrouter.ai/api/v1" };
    expect(modelOf(renamed)).toMatchObject({ billsClosedStreams: true, billsDocuments: true });
    expect(modelOf({ dialect: "openai", base_url: "https://api.cerebras.ai/v1" }).maxTokensPerSecond).toBe(5_000);
    expect(modelOf({ dialect: "openai", base_url: "https://llm.example/v1" }).billsClosedStreams).toBe(false);
  });

  it.each([
    ["https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1", { billsClosedStreams: true }],
    ["https://bedrock-mantle.us-west-2.api.aws/v1", { billsClosedStreams: true }],
    ["https://us-central1-aiplatform.googleapis.com/v1/projects/p/endpoints/openapi", { billsClosedStreams: true }],
    ["https://aiplatform.eu.rep.googleapis.com/v1/projects/p/endpoints/openapi", { billsClosedStreams: true }],
    ["https://eu.openrouter.ai/api/v1", { billsClosedStreams: true, billsDocuments: true, statesCost: true }],
    ["https://us-east-1.api.x.ai/v1", { billsClosedStreams: false, billsDocuments: true, statesCost: true }],
    ["https://openrouter.ai.example/v1", { billsClosedStreams: false, billsDocuments: false, statesCost: false }],
  ])("has the facts of its host at another address of it: %s", (base_url, facts) => {
    const { models } = load(
      { p: { dialect: "openai", base_url, api_keys: [KEY] } },
      { m: { provider: "p", upstream_model: "m-1" } },
    );
    expect(models.at(-1)).toMatchObject(facts);
  });

  it("is known to charge for documents where its host does", () => {
    const billsDocuments = (preset: string, input: readonly string[]): boolean => {
      const model = { provider: "p", upstream_model: "m-1", modalities: { input, output: ["text"] } };
      return load({ p: { preset, api_keys: [KEY] } }, { m: model }).models.at(-1)!.billsDocuments;
    };
    expect(PRESET_NAMES.filter((name) => (PRESETS[name] as Preset).documentFees !== undefined)).toEqual([
      "openrouter",
      "xai",
    ]);
    expect(["openrouter", "xai", "groq"].map((name) => billsDocuments(name, ["text"]))).toEqual([true, true, false]);
    expect(["openrouter", "xai"].map((name) => billsDocuments(name, ["text", "file"]))).toEqual([false, true]);
  });

  it("has the list prices of its host", () => {
    const model = { provider: "p", upstream_model: "llama-3.3-70b-versatile" };
    const { models } = load({ p: { preset: "groq" } }, { m: model }, { GROQ_API_KEY: KEY });
    expect(models.at(-1)!.price).toMatchObject({ input: 590_000, output: 790_000 });
  });

  it.each([
    ["groq", "the environment variable GROQ_API_KEY is not set; set it, or write the value here"],
    ["grok", "must be one of anthropic, gemini, openai"],
    [7, "must be one of anthropic, gemini, openai"],
  ])("that cannot be used says why: %s", (preset, problem) => {
    expect(refusalOf(() => load({ p: { preset } }, {}))).toContain(problem);
  });
});
