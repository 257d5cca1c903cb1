import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { RemoteProvider } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/parse.ts";

const KEY = "k".repeat(40);
const AZURE = "https://acme.openai.azure.com";

function load(provider: object): RemoteProvider {
  const models = { m: { provider: "p", upstream_model: "m-1" } };
  const { providers } = parseConfig({
    file: "f",
    text: JSON.stringify({ providers: { p: provider }, models }),
    env: {},
  });
  return providers[0] as RemoteProvider;
}

/** The problems without their places. */
function problemsOf(provider: object): string[] {
  try {
    load(provider);
  } catch (reason) {
    return (reason as Error).message
      .split("\n")
      .slice(1)
      .map((line) => line.replace(/^ *f:\d+:\d+: /, ""));
  }
  return [];
}

function priceOf(provider: object, upstream_model: string) {
  const text = JSON.stringify({ providers: { p: provider }, models: { m: { provider: "p", upstream_model } } });
  const { models } = parseConfig({ file: "f", text, env: {} });
  return models.find(({ id }) => id === "m")!.price;
}

describe("the pages of hosts", () => {
  const folder = join(import.meta.dirname, "../../docs/providers");
  const examples = readdirSync(folder).flatMap((page) => {
    const blocks = readFileSync(join(folder, page), "utf8").matchAll(/^```yaml\n([\s\S]*?)^```/gm);
    return [...blocks].map(([, text = ""], index) => ({ page, index, text }));
  });

  it.each(examples)("have files that can be used: $page, $index", ({ text }) => {
    const own = /^models:/m.test(text) ? text : `${text}\nmodels: { m: { provider: azure, upstream_model: m } }\n`;
    const { providers } = parseConfig({ file: "f", text: own, env: { AZURE_OPENAI_API_KEY: KEY } });
    expect(providers.map((provider) => provider.simulated)).not.toContain(true);
  });

  it("have some", () => {
    expect(examples.length).toBeGreaterThanOrEqual(4);
  });
});

describe("the list price at a host", () => {
  it("is known by the host, also behind another address", () => {
    const vertex = { preset: "vertex", project: "acme-1", region: "global" };
    const claude = { ...vertex, dialect: "anthropic", base_url: "https://private.example" };
    expect(priceOf(vertex, "gemini-2.5-flash")).toMatchObject({ input: 300_000, output: 2_500_000 });
    expect(priceOf(claude, "claude-sonnet-4-5@20250929")).toMatchObject({ input: 3_000_000, output: 15_000_000 });
    const azure = { preset: "azure", base_url: "https://private.example/openai/v1" };
    expect(priceOf(azure, "gpt-5")).toMatchObject({ input: 1_250_000, output: 10_000_000 });
    expect(priceOf(azure, "gpt-5-in-sweden")).toBeUndefined();
  });
});

describe("the host azure", () => {
  it("has the v1 API, and the addresses of deployments", () => {
    expect(load({ preset: "azure", base_url: `${AZURE}/openai/v1/`, api_keys: [KEY] })).toMatchObject({
      dialect: "openai",
      baseUrl: `${AZURE}/openai/v1`,
      apiKeys: [KEY],
      host: { kind: "azure", apiVersion: undefined },
    });
    const responses = load({ preset: "azure", dialect: "openai-responses", base_url: `${AZURE}/openai/v1` });
    expect(responses).toMatchObject({ dialect: "openai-responses", host: { kind: "azure", apiVersion: undefined } });
    const deployments = load({ preset: "azure", base_url: AZURE, api_version: "2024-10-21" });
    expect(deployments).toMatchObject({ apiKeys: [], host: { kind: "azure", apiVersion: "2024-10-21" } });
  });

  it.each([
    [{}, "providers.p.base_url: is required for the host azure"],
    [{ base_url: AZURE }, 'providers.p.base_url: must be like "https://NAME.openai.azure.com/openai/v1"'],
    [
      { base_url: `${AZURE}/openai/v1`, api_version: "2024-10-21" },
      "providers.p.api_version: is not for base_url with /openai/v1",
    ],
    [{ base_url: AZURE, api_version: "latest" }, "providers.p.api_version: must be a version of the API"],
    [
      { base_url: `${AZURE}/openai/v1`, region: "eastus" },
      "providers.p.region: is only for providers with host: bedrock or vertex",
    ],
    [
      { base_url: `${AZURE}/openai/v1`, dialect: "gemini" },
      "providers.p.dialect: the host azure has only: openai, openai-responses",
    ],
    [
      { base_url: AZURE, api_version: "2024-10-21", dialect: "openai-responses" },
      "providers.p.api_version: is not for the dialect openai-responses",
    ],
    [
      { base_url: AZURE, dialect: "openai-responses" },
      'providers.p.base_url: must be like "https://NAME.openai.azure.com/openai/v1"',
    ],
    [
      { base_url: `${AZURE}/openai/v1`, api_keys: [KEY], headers: { "API-Key": KEY } },
      "providers.p.headers.API-Key: this header carries the credential; write that in api_keys",
    ],
    [
      { base_url: `${AZURE}/openai/v1`, headers: { Authorization: `Bearer ${KEY}` } },
      "providers.p.headers.Authorization: this header carries a token that Parley gets for the host azure",
    ],
  ])("says what is wrong with %j", (settings, problem) => {
    expect(problemsOf({ preset: "azure", ...settings })).toEqual([expect.stringContaining(problem)]);
  });
});

describe("the host bedrock", () => {
  const complete = { preset: "bedrock", region: "eu-central-1" };

  it("has an address by its region, and needs no keys", () => {
    expect(load(complete)).toMatchObject({
      dialect: "anthropic",
      baseUrl: "https://bedrock-runtime.eu-central-1.amazonaws.com",
      host: { kind: "bedrock", region: "eu-central-1" },
      apiKeys: [],
    });
    expect(load({ ...complete, dialect: "bedrock-converse", api_keys: [KEY] }).dialect).toBe("bedrock-converse");
    expect(load({ ...complete, base_url: "https://private.example" }).baseUrl).toBe("https://private.example");
  });

  it.each([
    [{ preset: "bedrock" }, 'providers.p.region: is required for the host bedrock, such as "eu-central-1"'],
    [{ ...complete, dialect: "gemini" }, "providers.p.dialect: the host bedrock has only: anthropic, bedrock-converse"],
    [{ ...complete, project: "acme-1" }, "providers.p.project: is only for providers with host: vertex"],
    [
      { ...complete, headers: { authorization: `Bearer ${KEY}` } },
      "providers.p.headers.authorization: this header carries a token that Parley gets for the host bedrock",
    ],
  ])("says what is wrong with %j", (settings, problem) => {
    expect(problemsOf(settings)).toEqual([expect.stringContaining(problem)]);
  });

  it.each([
    ["eu.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic"],
    ["global.anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic"],
    ["eu.amazon.nova-lite-v1:0", "bedrock-converse"],
  ])("knows a list price of %s, also behind another address", (upstream_model, dialect) => {
    const price = priceOf({ ...complete, dialect, base_url: "https://private.example" }, upstream_model);
    expect(price?.input).toBeGreaterThan(0);
  });
});

describe("the host vertex", () => {
  const complete = { preset: "vertex", project: "acme-1", region: "europe-west4" };

  it("has an address by its region", () => {
    expect(load(complete)).toMatchObject({
      dialect: "gemini",
      baseUrl: "https://europe-west4-aiplatform.googleapis.com",
      host: { kind: "vertex", project: "acme-1", region: "europe-west4", credentialFile: undefined },
    });
    expect(load({ ...complete, region: "global" }).baseUrl).toBe("https://aiplatform.googleapis.com");
    expect(load({ ...complete, region: "eu" }).baseUrl).toBe("https://aiplatform.eu.rep.googleapis.com");
    expect(load({ ...complete, base_url: "https://private.example" }).baseUrl).toBe("https://private.example");
    expect(load({ ...complete, dialect: "anthropic" }).dialect).toBe("anthropic");
  });

  it.each([
    [
      { preset: "vertex", project: "acme-1" },
      ['providers.p.region: is required for the host vertex, such as "europe-west4" or "global"'],
    ],
    [
      { preset: "vertex", region: "eu" },
      ['providers.p.project: is required for the host vertex, such as "my-project-123"'],
    ],
    [{ ...complete, api_keys: [KEY] }, ["providers.p.api_keys: is not for the host vertex"]],
    [{ ...complete, dialect: "openai" }, ["providers.p.dialect: the host vertex has only: gemini, anthropic"]],
    [{ ...complete, region: "evil.example/" }, ["providers.p.region: must be the name of a region"]],
    [{ ...complete, project: "a/../b" }, ["providers.p.project: must be the ID or the number of a project"]],
    [{ ...complete, api_version: "2024-10-21" }, ["providers.p.api_version: is only for providers with host: azure"]],
    [{ ...complete, credential_file: "key.json" }, ["providers.p.credential_file: must be an absolute path"]],
    [
      { dialect: "gemini", project: "acme-1", api_keys: [KEY] },
      ["providers.p.project: is only for providers with host: vertex"],
    ],
  ])("says what is wrong with %j", (settings, problems) => {
    expect(problemsOf(settings)).toEqual(problems.map((problem) => expect.stringContaining(problem) as string));
  });
});
