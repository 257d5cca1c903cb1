import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument, parse } from "yaml";
import { describe, expect, it } from "vitest";
import { convertLitellm } from "../../src/config/litellm/convert.ts";
import { parseConfig } from "../../src/config/parse.ts";

const folder = join(import.meta.dirname, "litellm");
const files = readdirSync(folder);
const read = (file: string): string => readFileSync(join(folder, file), "utf8");
const convert = (text: string) => convertLitellm(text, "config.yaml");
const convertFile = (file: string) => convert(read(file));

/** Values of variables of which more is checked than that they are there. */
const VALUES: Readonly<Record<string, string>> = {
  AZURE_API_BASE: "https://team.openai.azure.com",
  AWS_REGION_NAME: "us-east-1",
  VERTEXAI_PROJECT: "my-project-123",
  VERTEXAI_LOCATION: "europe-west4",
  GOOGLE_APPLICATION_CREDENTIALS: "/etc/parley/google.json",
  REDIS_HOST: "redis.internal",
};

/** The configuration that Parley reads from a conversion, with all variables set. */
function load(yaml: string) {
  const names = [...yaml.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""]) => name);
  const env = Object.fromEntries(names.map((name) => [name, VALUES[name] ?? "a-real-credential"]));
  return parseConfig({ file: "parley.yaml", text: yaml, env });
}

interface Converted {
  readonly providers: Record<string, Record<string, unknown>>;
  readonly models: Record<string, Record<string, unknown>>;
  readonly [section: string]: unknown;
}

const sections = (yaml: string): Converted => parse(yaml) as Converted;

describe("a converted configuration of LiteLLM", () => {
  it.each(files)("loads: %s", (file) => {
    const { models, routes, imports } = load(convertFile(file).yaml);
    expect(models.length + routes.length + imports.length).toBeGreaterThan(1);
  });

  it.each(files)("has every remark as a comment: %s", (file) => {
    const { yaml, remarks } = convertFile(file);
    expect(remarks.length).toBeGreaterThan(0);
    for (const { kind, place, setting, text } of remarks)
      expect(yaml).toContain(`# ${kind}: ${setting} (${place}): ${text}`);
  });

  it("has no secret of the file, but variables, and says which", () => {
    const { yaml, remarks } = convertFile("large.yaml");
    expect(yaml).not.toMatch(/in-the-file|third-secret/);
    expect(JSON.stringify(remarks)).not.toMatch(/in-the-file|third-secret/);
    expect(sections(yaml).providers).toMatchObject({
      openai: { api_keys: ["${OPENAI_API_KEY_1}"] },
      groq: { api_keys: ["${GROQ_API_KEY_2}"], headers: { "X-Api-Key": "${X_API_KEY_2}", "X-Team": "search" } },
    });
    const said = remarks.filter(({ text }) => text.startsWith("it is a secret in the file"));
    expect(said.map(({ setting }) => setting)).toContain("router_settings.redis_password");
  });
});

describe("a secret that has no setting of its own", () => {
  const deployment = (params: object) =>
    convert(JSON.stringify({ model_list: [{ model_name: "m", litellm_params: params }] }));

  it.each([
    ["a query", { model: "openai/m", api_base: "https://llm.example.com/v1?key=hunter2#hunter2" }],
    ["a user", { model: "openai/m", api_base: "https://a:hunter2@llm.example.com/v1" }],
    ["a user before a variable", { model: "openai/m", api_base: "https://a:hunter2@os.environ/HOST" }],
    ["a user before a variable", { model: "azure/m", api_base: "https://a:hunter2@${HOST}/?key=hunter2" }],
    ["an address that cannot be read", { model: "azure/m", api_base: "https://a:hunter2/@llm.example.com" }],
    ["an endpoint of Bedrock", { model: "bedrock/m", api_base: "https://a:hunter2@b.example.com?key=hunter2" }],
    ["a header", { model: "openai/m", headers: { "x-passwd": "hunter2" } }],
    ["a header", { model: "openai/m", headers: { "x-credential": "hunter2" } }],
    ["a header", { model: "openai/m", headers: { Authorization: "Bearer hunter2 ${X}" } }],
    ["a key with a variable", { model: "openai/m", api_key: "hunter2-${X}" }],
  ])("is not in the result: %s in %j", (_, params) => {
    const converted = deployment(params);
    expect(JSON.stringify(converted)).not.toContain("hunter2");
    expect(converted.remarks.map(({ setting }) => setting)).toContainEqual(
      expect.stringMatching(/litellm_params\.(api_base|api_key|headers\..*)$/),
    );
  });

  it.each(["redis://cache:6379?password=hunter2", "redis://:hunter2@${HOST}:6379", "redis://hunter2@cache:6379"])(
    "is not in the result: the address of Redis %s",
    (url) => {
      const { yaml, remarks } = convert(JSON.stringify({ model_list: [], router_settings: { redis_url: url } }));
      expect(sections(yaml)["redis"]).toEqual({ url: "${REDIS_URL}" });
      expect(JSON.stringify({ yaml, remarks })).not.toContain("hunter2");
    },
  );

  it("leaves the rest of an address as it is written", () => {
    const baseUrl = (api_base: string) =>
      sections(deployment({ model: "openai/m", api_base }).yaml).providers["compatible"]?.["base_url"];
    expect(baseUrl("https://a:b@llm.example.com/v1/{x}/m@2?c=d")).toBe("https://llm.example.com/v1/{x}/m@2");
    expect(baseUrl("https://${HOST}/v1")).toBe("https://${HOST}/v1");
    expect(baseUrl("llm.example.com/v1")).toBe("llm.example.com/v1");
  });
});

describe("deployments", () => {
  it("of one name are targets with shares, before its fallbacks", () => {
    const { models, providers } = sections(convertFile("small-team.yaml").yaml);
    expect(models["gpt-4o"]).toEqual({
      targets: [
        { model: "gpt-4o@azure", weight: 600_000 },
        { model: "gpt-4o@azure-2", weight: 200_000 },
        { model: "claude-sonnet", weight: 0.001 },
      ],
      policy: "weighted",
    });
    expect(providers["azure"]).toEqual({
      preset: "azure",
      base_url: "https://team-eu.openai.azure.com",
      api_version: "2024-10-21",
      api_keys: ["${AZURE_API_KEY_EU}"],
    });
  });

  it("without others of their name, or fallbacks, have the name themselves", () => {
    const { models, aliases } = sections(convertFile("small-team.yaml").yaml);
    expect(models["claude-sonnet"]).toEqual({
      provider: "anthropic",
      upstream_model: "claude-sonnet-4-5-20250929",
      context_window: 200_000,
      max_output_tokens: 64_000,
      modalities: { input: ["text", "image"], output: ["text"] },
    });
    expect(models["house-llama"]).toMatchObject({ provider: "vllm", price: { input: 0.2, output: 0.4 } });
    expect(models["embed"]).toMatchObject({ modalities: { input: ["text"], output: ["embedding"] } });
    expect(aliases).toEqual({ "gpt-4": "gpt-4o" });
  });

  it("with an order are targets in that order", () => {
    const { models } = sections(convertFile("clouds.yaml").yaml);
    expect(models["sonnet"]).toEqual({
      targets: [{ model: "sonnet@vertex-claude" }, { model: "sonnet@bedrock-claude" }],
    });
  });

  it("at clouds have their region, project and credential", () => {
    const { providers, models } = sections(convertFile("clouds.yaml").yaml);
    expect(providers).toEqual({
      "bedrock-claude": { preset: "bedrock", region: "eu-central-1" },
      "vertex-claude": {
        preset: "vertex",
        dialect: "anthropic",
        project: "my-project-123",
        region: "europe-west1",
      },
      bedrock: { preset: "bedrock", dialect: "bedrock-converse", region: "us-east-1" },
      vertex: {
        preset: "vertex",
        project: "${VERTEXAI_PROJECT}",
        region: "${VERTEXAI_LOCATION}",
        credential_file: "${GOOGLE_APPLICATION_CREDENTIALS}",
      },
      azure: {
        preset: "azure",
        dialect: "openai-responses",
        base_url: "${AZURE_API_BASE}/openai/v1",
        api_keys: ["${AZURE_API_KEY}"],
      },
      "azure-2": {
        preset: "azure",
        base_url: "https://team-eu.openai.azure.com",
        api_version: "2025-01-01-preview",
      },
    });
    expect(models["o4"]).toMatchObject({ provider: "azure-2", upstream_model: "o4-mini-2025" });
    expect(models["flash"]).toMatchObject({
      modalities: { input: ["text", "image", "audio", "file"], output: ["text"] },
    });
  });

  it("that Parley cannot reach are left out, and listed", () => {
    const { yaml, remarks } = convertFile("clouds.yaml");
    for (const name of ["titan-embed", "mistral-on-vertex", "watson", "dall-e"])
      expect(sections(yaml).models).not.toHaveProperty(name);
    const lost = remarks.filter(({ kind }) => kind === "no counterpart").map(({ setting }) => setting);
    expect(lost).toEqual(
      expect.arrayContaining([
        "model_list[3].litellm_params.model",
        "model_list[5].litellm_params.model",
        "model_list[8].litellm_params.model",
        "model_list[9].model_info",
        "model_list[7].litellm_params.litellm_credential_name",
      ]),
    );
  });

  it("with weights, defaults, headers and facts keep them", () => {
    const { models, providers, aliases } = sections(convertFile("large.yaml").yaml);
    expect(aliases).toEqual({ quick: "fast" });
    expect(models["fast"]).toEqual({
      targets: [
        { model: "fast@openai", weight: 9000 },
        { model: "fast@groq", weight: 1000 },
        { model: "local", weight: 0.001 },
        { model: "other@compatible", weight: 0.001 },
      ],
      policy: "weighted",
    });
    expect(models["fast@openai"]).toMatchObject({
      upstream_model: "gpt-4.1-mini",
      description: "Small and fast",
      capabilities: { reasoning: "level" },
      timeouts: { first_content_ms: 5500, total_ms: 30_000 },
    });
    expect(models["local"]).toEqual({
      provider: "ollama",
      upstream_model: "llama3.2",
      max_output_tokens: 40_000,
      default_max_tokens: 40_000,
      modalities: { input: ["text"], output: ["text"] },
      capabilities: { tools: false, forced_tools: false },
    });
    expect(providers["ollama"]).toEqual({
      preset: "ollama",
      base_url: "http://127.0.0.1:11434/v1",
      headers: { "OpenAI-Organization": "org-1" },
    });
    expect(providers["compatible-2"]).toEqual({
      dialect: "openai",
      base_url: "http://10.0.0.9:8000/v1",
      allow_private: true,
    });
    // By the fallback for all names.
    expect(models["other"]).toEqual({ targets: [{ model: "other@compatible" }, { model: "local" }] });
    expect(models["old"]).toMatchObject({ targets: [{ weight: 1_000_000 }, { weight: 333_333 }, { model: "local" }] });
    expect(models).not.toHaveProperty("nameless");
    expect(models).toHaveProperty("name-with-blanks");
    expect(models["ada"]).toMatchObject({ provider: "openai-2" });
    expect(models["ada@openai-3"]).toMatchObject({ provider: "openai-3" });
  });

  it("of all models of a provider are imports", () => {
    const { yaml, remarks } = convertFile("wildcards.yaml");
    expect(sections(yaml)).toEqual({
      providers: {
        openai: { preset: "openai", api_keys: ["${OPENAI_API_KEY}"] },
        anthropic: { preset: "anthropic", api_keys: ["${ANTHROPIC_API_KEY}"] },
        openrouter: { preset: "openrouter", api_keys: ["${OPENROUTER_API_KEY}"] },
      },
      models: { "openai/*": "import", "anthropic/*": "import", "*": "import" },
    });
    const lost = remarks.filter(({ kind }) => kind === "no counterpart").map(({ setting }) => setting);
    expect(lost).toEqual([3, 4, 5].map((index) => `model_list[${index}].model_name`));
  });
});

describe("settings of the whole gateway", () => {
  it("become those of timeouts, breakers, Redis and overload", () => {
    const { timeouts, breaker, redis, overload } = sections(convertFile("large.yaml").yaml);
    expect({ timeouts, breaker, redis, overload }).toEqual({
      timeouts: undefined,
      breaker: { failures: 4, open_ms: 60_000, max_open_ms: 60_000 },
      redis: { url: "redis://:${REDIS_PASSWORD}@${REDIS_HOST}:6380" },
      overload: { max_calls: 500 },
    });
    expect(sections(convertFile("small-team.yaml").yaml)["timeouts"]).toEqual({ total_ms: 600_000 });
  });
});

/** Maps in which LiteLLM has settings, in the largest example. */
const PARTS = [
  [],
  ["model_list", 0],
  ["model_list", 1, "litellm_params"],
  ["model_list", 3, "model_info"],
  ["router_settings"],
  ["litellm_settings"],
  ["general_settings"],
];

describe("what has no counterpart", () => {
  it.each(PARTS)("is listed with its place, never dropped: in %j", (...path) => {
    const document = parseDocument(read("large.yaml"), { merge: true });
    document.setIn([...path, "invented_setting"], 1);
    const { remarks, yaml } = convert(document.toString());
    const found = remarks.filter(({ setting }) => setting.endsWith("invented_setting"));
    expect(found).toMatchObject([{ kind: "no counterpart", text: "Parley has no such setting" }]);
    expect(found[0]!.place).toMatch(/^config\.yaml:\d+:\d+$/);
    expect(yaml).toContain("invented_setting");
  });

  it("is listed with an alternative, where there is one", () => {
    const { remarks } = convertFile("large.yaml");
    const textOf = (setting: string) => remarks.find((remark) => remark.setting === setting)?.text;
    expect(textOf("general_settings.master_key")).toContain("parley keys create");
    expect(textOf("litellm_settings.cache")).toContain("there is no cache of answers");
    expect(textOf("guardrails")).toContain("there are no guardrails");
    expect(textOf("router_settings.routing_strategy")).toContain("usage-based-routing-v2");
    expect(textOf("include")).toContain("this file was not read");
  });

  it("is all of an empty list, for which the result has the simulator", () => {
    const { yaml } = convert("model_list: []\n");
    expect(load(yaml).providers.every(({ simulated }) => simulated)).toBe(true);
  });
});

it("a text that is no map of YAML is refused, with its place and without its content", () => {
  expect(() => convert("model_list: [\n  sk-secret")).toThrow(/config\.yaml:\d+:\d+/);
  expect(() => convert("model_list: [\n  sk-secret")).not.toThrow(/sk-secret/);
});
