import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import type { Environment } from "../../src/config/environment.ts";
import { checkStored, parseConfig } from "../../src/config/parse.ts";
import { NOTHING_STORED, type StoredConfiguration, type StoredCredential, UNREAD } from "../../src/config/stored.ts";
import { documentOf, readEntryYaml, readStored } from "../../src/config/stored-document.ts";
import { listEntries } from "../../src/config/stored-entries.ts";
import { cpuMs } from "../support/cpu-time.ts";
import { errorOf } from "../support/errors.ts";

const KEY = "a-long-enough-credential";
const ACME: StoredCredential = { provider: "acme", address: "https://api.acme.example", apiKeys: [KEY] };

interface Parts {
  readonly file?: string;
  readonly env?: Environment;
  readonly credentials?: readonly StoredCredential[];
}

function sourceOf(document: string, { file = "{}", env = {}, credentials = [ACME] }: Parts = {}) {
  return { file: "parley.yaml", text: file, env, stored: { version: 3, document, credentials } };
}

const parse = (document: string, parts?: Parts) => parseConfig(sourceOf(document, parts));
const problemsOf = (document: string, parts?: Parts) =>
  checkStored(sourceOf(document, parts), []).problems.map(({ line }) => line);

const DOCUMENT = `
providers:
  acme: { dialect: openai, base_url: "https://api.acme.example/v1" }
models:
  acme/one: { provider: acme, upstream_model: one }
aliases:
  gpt-5: acme/one
timeouts:
  idle_ms: 7000
`;

describe("a stored configuration", () => {
  it("has its providers with their credentials, models, aliases and timeouts in force", () => {
    const config = parse(DOCUMENT);
    expect(config.stored).toEqual({ version: 3, leftOut: [] });
    expect(config.providers).toMatchObject([{ name: "acme", apiKeys: [KEY], lack: undefined }]);
    expect(config.models.map(({ id, timeouts }) => [id, timeouts.idleMs])).toEqual([["acme/one", 7000]]);
    expect(config.aliases).toEqual([["gpt-5", "acme/one"]]);
  });

  it("may have a provider before its first model", () => {
    const document = 'providers: { acme: { dialect: openai, base_url: "https://api.acme.example/v1" } }';
    expect(problemsOf(document)).toEqual([]);
    expect(parse(document).models).toEqual([]);
  });

  it("may import the models that its providers list, and those of the file's", () => {
    const file = `providers: { filed: { dialect: openai, api_keys: [${KEY}] } }`;
    const document = `${DOCUMENT.split("models:")[0]}models: { "acme/*": import, "filed/*": import }`;
    const lists = new Map([["acme", [{ name: "one", contextWindow: undefined, maxOutputTokens: undefined }]]]);
    const source = { ...sourceOf(document, { file }), lists };
    const config = parseConfig(source);
    expect(config.imports.map(({ provider }) => provider)).toEqual(["filed", "acme"]);
    expect(config.models.map(({ id }) => id)).toEqual(["acme/one"]);
    const imported = listEntries(config, source).find(({ name }) => name === "acme/one");
    expect(imported).toMatchObject({ origin: "imported", state: "in force" });
  });

  it("may be empty", () => {
    expect(parse("").providers).toEqual([]);
    expect(parse("").stored).toEqual({ version: 3, leftOut: [] });
  });

  it("has at most 2,000 entries", () => {
    const document = (length: number) => `aliases:\n${Array.from({ length }, (_, at) => `  a${at}: m`).join("\n")}`;
    expect(readStored(document(2000)).entries).toHaveLength(2000);
    expect(() => readStored(document(2001))).toThrow("has 2001 entries and must have at most 2,000");
  });

  it("has its first 100 problems listed, however many there are", () => {
    const keys = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`);
    const listed = problemsOf(`providers: { acme: {${keys.join(", ")}} }`);
    expect(listed).toHaveLength(100);
    expect(listed[99]).toContain("acme.k99: unknown key");
  });

  it.each([
    ["brackets", "[".repeat(250_000)],
    ["maps", "{a: ".repeat(60_000)],
    ["lists", `${"- ".repeat(120_000)}x`],
    ["keys", `${"? ".repeat(120_000)}x`],
  ])("is refused at once when %s are nested too deeply", (_, text) => {
    const problem = ":1:1: it is nested too deeply";
    expect(() => readEntryYaml(text)).toThrow(expect.objectContaining({ lines: [problem] }));
  });

  it.each([
    ["aliases", `[&a {}${", *a".repeat(60_000)}]`],
    [
      "elements with a tag",
      `%YAML 1.1\n--- !!omap\n${Array.from({ length: 25_000 }, (_, at) => `- k${at}: 1\n`).join("")}`,
    ],
  ])("is refused at once when it has many %s", (_, text) => {
    expect(() => readEntryYaml(text)).toThrow("for the configuration file only");
    expect(cpuMs(() => errorOf(ConfigError, () => readEntryYaml(text)))).toBeLessThan(500);
  });

  it("has addresses of at most 2,048 characters", () => {
    const address = (slashes: number): string => `https://acme.example/${"/".repeat(slashes)}x`;
    const problems = (slashes: number): string =>
      problemsOf(`providers: { acme: { dialect: openai, base_url: "${address(slashes)}" } }`).join();
    expect(problems(2_000)).not.toContain("base_url");
    expect(problems(200_000)).toContain("providers.acme.base_url");
    expect(cpuMs(() => problems(200_000))).toBeLessThan(500);
  });

  it("may have signs of YAML in its texts, and empty items", () => {
    const signs = "*a !b %c";
    const text = `a: "${"[".repeat(40)}"\nb: |\n  ${"- ".repeat(40)}\n  ${signs}\nc:\n${"  -\n".repeat(40)}d: [${"[], ".repeat(40)}]\ne: '${signs}' # ${signs}\nf: x ${signs}\n  ${signs}`;
    expect(readEntryYaml(text).value).toMatchObject({ a: "[".repeat(40), e: signs, f: `x ${signs} ${signs}` });
  });

  it("is parsed once", () => {
    const { stored } = sourceOf(DOCUMENT);
    expect(documentOf(stored)).toBe(documentOf(stored));
  });

  it("is not used when the operator switches it off", () => {
    const config = parse(DOCUMENT, { file: "stored_configuration: { enabled: false }" });
    expect([config.providers, config.stored]).toEqual([[], { version: 3, leftOut: [] }]);
  });
});

describe("the simulator beside a stored configuration", () => {
  const simulated = ["alpha", "beta", "gamma"];
  const namesOf = (stored: StoredConfiguration, file = "{}") =>
    parseConfig({ file: "parley.yaml", text: file, env: {}, stored }).providers.map(({ name }) => name);

  it("answers by default only while nothing has ever been stored", () => {
    expect(namesOf(NOTHING_STORED)).toEqual(simulated);
    expect(namesOf({ ...NOTHING_STORED, version: 1 })).toEqual([]);
    expect(namesOf({ ...NOTHING_STORED, document: DOCUMENT.replace("base_url", "base_ulr") })).toEqual([]);
    expect(namesOf({ ...NOTHING_STORED, version: 1, document: "a: [" })).toEqual([]);
    expect(namesOf(UNREAD)).toEqual([]);
    expect(namesOf(UNREAD, "simulator: { enabled: true }")).toEqual(simulated);
  });

  it("is not there for the file, whose entries that need it are left out and listed", () => {
    const file =
      "models: { fast: { provider: alpha, upstream_model: x } }\naliases: { mine: fast, haiku: alpha-haiku-4.5 }";
    const source = sourceOf(DOCUMENT, { file });
    const config = parseConfig(source);
    expect(config.models.map(({ id }) => id)).toEqual(["acme/one"]);
    expect(config.aliases).toEqual([["gpt-5", "acme/one"]]);
    expect(config.stored?.leftOut).toMatchObject([
      {
        path: ["models", "fast"],
        problems: [expect.stringContaining("there is no such provider; none is configured")],
      },
      { path: ["aliases", "mine"] },
      { path: ["aliases", "haiku"] },
    ]);
    const left = listEntries(config, source).filter(({ state }) => state === "left out");
    expect(left.map(({ name, origin }) => [name, origin])).toEqual([
      ["fast", "file"],
      ["mine", "file"],
      ["haiku", "file"],
    ]);
  });

  it("is not needed by an entry of the file whose provider is stored", () => {
    const document = DOCUMENT.replace("models:", '  alpha: { base_url: "https://api.acme.example" }\nmodels:');
    const config = parse(document, { file: "aliases: { mine: alpha-haiku-4.5 }" });
    expect(config.aliases).toContainEqual(["mine", "alpha-haiku-4.5"]);
    expect(config.stored?.leftOut).toEqual([]);
  });
});

describe("an entry of the file", () => {
  it("takes precedence over a stored one of its name", () => {
    const file = `
      providers: { acme: { dialect: openai, base_url: "https://file.example/v1", api_keys: ["${KEY}-of-the-file"] } }
      models: { acme/one: { provider: acme, upstream_model: of-the-file } }
      timeouts: { idle_ms: 9000 }`;
    const config = parse(DOCUMENT, { file });
    expect(config.providers).toMatchObject([{ baseUrl: "https://file.example/v1", apiKeys: [`${KEY}-of-the-file`] }]);
    expect(config.models).toMatchObject([{ upstreamModel: "of-the-file", timeouts: { idleMs: 9000 } }]);
    expect(config.aliases).toEqual([["gpt-5", "acme/one"]]);
  });

  it("is listed with its origin and without its secrets, beside the stored one that is not used", () => {
    const file = `providers: { acme: { dialect: openai, api_keys: [${KEY}, "\${OTHER_KEY}"], headers: { x-team: secret } } }`;
    const source = sourceOf(DOCUMENT, { file, env: { OTHER_KEY: `${KEY}-2` } });
    const entries = listEntries(parseConfig(source), source);
    const found = entries.filter(({ name }) => name === "acme");
    expect(found).toMatchObject([
      { origin: "file", state: "in force", models: 1 },
      { origin: "stored", state: "overridden", models: 0 },
    ]);
    expect(found[0]?.entry).toContain("${OTHER_KEY}");
    expect(JSON.stringify(entries)).not.toContain(KEY);
    expect(JSON.stringify(entries)).not.toContain("secret");
  });

  it("has to be valid without the stored configuration", () => {
    const file = "aliases: { mine: acme/one }";
    expect(() => parse(DOCUMENT, { file })).toThrow(ConfigError);
  });
});

describe("the models of a provider of the file", () => {
  const file = `
    providers: { filed: { dialect: openai, api_keys: [${KEY}] }, alpha: { dialect: anthropic, api_keys: [${KEY}] } }
    models: { "filed/*": import }`;
  const evil = "{ provider: acme, upstream_model: x }";
  const names = (section: string, entries: string) => DOCUMENT.replace(`${section}:`, `${section}:\n  ${entries}`);

  it.each([
    [names("models", `filed/x: ${evil}`), ["models", "filed/x"]],
    [names("aliases", "filed/x: acme/one"), ["aliases", "filed/x"]],
    [names("aliases", '"fil*": acme/one'), ["aliases", "fil*"]],
    [names("aliases", '"filed/gpt*": acme/one'), ["aliases", "filed/gpt*"]],
    [names("models", `alpha-haiku-4.5: ${evil}`), ["models", "alpha-haiku-4.5"]],
    [names("models", "alpha-haiku-4.5: { price: { input: 0, output: 0 } }"), ["models", "alpha-haiku-4.5"]],
  ])("are not taken over by a stored entry: %s", (document, path) => {
    expect(problemsOf(document, { file })).toHaveLength(1);
    const config = parse(document, { file });
    expect(config.stored?.leftOut).toMatchObject([{ path }]);
    expect(config.models.find(({ id }) => id === "alpha-haiku-4.5")?.provider).toBe("alpha");
  });

  describe("when the file imports from all", () => {
    const lists = new Map([["filed", [{ name: "gpt-9", contextWindow: undefined, maxOutputTokens: undefined }]]]);
    const all = file.replace("filed/*", "*");
    const byModel = names("models", `gpt-9: ${evil}`);
    const byAlias = names("aliases", '"gpt-*": acme/one');

    it("are not taken over by a change, as far as their lists are known", () => {
      const pathsOf = (document: string, before: readonly (readonly string[])[] = []) =>
        checkStored({ ...sourceOf(document, { file: all }), lists }, before).problems.map(({ path }) => path);
      expect(pathsOf(byModel)).toEqual([["models", "gpt-9"]]);
      expect(pathsOf(byAlias)).toEqual([["aliases", "gpt-*"]]);
      expect(pathsOf(names("models", '"filed/*": import'))).toEqual([["models", "filed/*"]]);
      expect(pathsOf(DOCUMENT)).toEqual([]);
      expect(pathsOf(byModel, [["models", "gpt-9"]])).toEqual([]);
    });

    it("do not take over a stored name by being listed later", () => {
      const load = (document: string) => parseConfig({ ...sourceOf(document, { file: all }), lists });
      const [withModel, withAlias] = [load(byModel), load(byAlias)];
      expect([withModel.stored?.leftOut, withAlias.stored?.leftOut]).toEqual([[], []]);
      expect(withModel.models.find(({ id }) => id === "gpt-9")?.provider).toBe("acme");
      expect(withAlias.models.map(({ id }) => id)).not.toContain("gpt-9");
      expect(withAlias.aliases).toContainEqual(["gpt-*", "acme/one"]);
    });
  });

  it("are those of the environment's providers too, and a stored provider's can be changed", () => {
    const document = "models: { alpha-haiku-4.5: { price: { input: 0, output: 0 } } }";
    expect(problemsOf(document, { env: { ALPHA_API_KEY: KEY } }).join()).toContain("is a built-in model of alpha");
    const ofStored = `providers: { alpha: { base_url: "https://api.acme.example" } }\n${document}`;
    const credentials = [{ ...ACME, provider: "alpha" }];
    expect(problemsOf(ofStored, { credentials })).toEqual([]);
  });
});

it("the environment takes precedence over stored entries", () => {
  const document = 'providers: { alpha: { base_url: "https://stored.example" } }\ntimeouts: { idle_ms: 7000 }';
  const env = { ALPHA_API_KEY: KEY, PARLEY_TIMEOUTS_IDLE_MS: "8000" };
  const source = sourceOf(document, { env });
  const config = parseConfig(source);
  expect(config.providers).toMatchObject([{ name: "alpha", baseUrl: "https://api.anthropic.com", apiKeys: [KEY] }]);
  expect(config.timeouts.idleMs).toBe(8000);
  const stored = listEntries(config, source).filter(({ origin }) => origin === "stored");
  expect(stored.map(({ state }) => state)).toEqual(["overridden", "overridden"]);
});

describe("stored limits, retries and circuit breakers", () => {
  const document = `
limits: { requests_per_minute: 30, monthly_budget_usd: 12.5, concurrent_requests: unlimited }
retries: { cap_ms: 500 }
breaker: { failures: 3 }
`;

  it("are in force, and the other settings of their sections have their defaults", () => {
    const config = parse(document);
    expect(config.stored?.leftOut).toEqual([]);
    expect(config.limits).toEqual({
      requestsPerMinute: 30,
      tokensPerMinute: 2_000_000,
      concurrentRequests: undefined,
      monthlyBudgetMicroUsd: 12_500_000,
    });
    expect(config.retries).toEqual({ baseMs: 100, capMs: 500 });
    expect(config.breaker).toEqual({ failures: 3, openMs: 5000, maxOpenMs: 30_000 });
  });

  it("are overridden by the file and by variables, one by one, and are listed with where each is from", () => {
    const source = sourceOf(document, {
      file: "limits: { requests_per_minute: 600, burst_seconds: 5 }",
      env: { PARLEY_RETRIES_CAP_MS: "700", PARLEY_LIMITS_TOKENS_PER_MINUTE: "1000" },
    });
    const config = parseConfig(source);
    expect(config.limits).toMatchObject({
      requestsPerMinute: 600,
      tokensPerMinute: 1000,
      concurrentRequests: undefined,
    });
    expect([config.retries.capMs, config.breaker.failures, config.burstMs]).toEqual([700, 3, 5000]);
    const listed = listEntries(config, source)
      .filter(({ section }) => ["limits", "retries", "breaker"].includes(section))
      .map(({ section, name, origin, state, entry }) => [`${section}.${name}`, entry, origin, state].join(" "));
    expect(listed).toEqual([
      "limits.requests_per_minute 600 file in force",
      "limits.burst_seconds 5 file in force",
      "limits.requests_per_minute 30 stored overridden",
      "limits.monthly_budget_usd 12.5 stored in force",
      "limits.concurrent_requests unlimited stored in force",
      "limits.tokens_per_minute 1000 environment in force",
      "retries.cap_ms 500 stored overridden",
      "retries.base_ms 100 built in in force",
      "retries.cap_ms 700 environment in force",
      "breaker.failures 3 stored in force",
      "breaker.open_ms 5000 built in in force",
      "breaker.max_open_ms 30000 built in in force",
    ]);
  });

  it("are refused with line and column", () => {
    expect(problemsOf("limits:\n  requests_per_minute: 0\n  monthly_budget_usd: much")).toEqual([
      expect.stringMatching(/^stored configuration:2:24: limits\.requests_per_minute: must be /),
      expect.stringMatching(/^stored configuration:3:23: limits\.monthly_budget_usd: must be a number of US dollars/),
    ]);
    expect(problemsOf("limits: { burst_seconds: 5 }")).toEqual([
      "stored configuration:1:26: limits.burst_seconds: is for the configuration file only, because a change needs a restart",
    ]);
    expect(problemsOf("breaker: { failure: 5 }")).toEqual([expect.stringContaining("did you mean failures?")]);
  });

  it("are left out, and the file stays, where the two exclude each other", () => {
    const small = parse("retries: { cap_ms: 500 }", { file: "retries: { base_ms: 1000 }" });
    expect(small.retries).toEqual({ baseMs: 1000, capMs: 2000 });
    expect(small.stored?.leftOut).toEqual([
      {
        path: ["retries", "cap_ms"],
        problems: ["stored configuration:1:20: retries.cap_ms: must be at least base_ms"],
      },
    ]);
    const large = parse("breaker: { open_ms: 7000, failures: 2 }", { file: "breaker: { max_open_ms: 6000 }" });
    expect(large.breaker).toEqual({ failures: 2, openMs: 5000, maxOpenMs: 6000 });
    expect(large.stored?.leftOut).toMatchObject([{ path: ["breaker", "open_ms"] }]);
    const both = parse("breaker: { open_ms: 7000, max_open_ms: 6000 }");
    expect(both.stored?.leftOut).toMatchObject([{ path: ["breaker", "open_ms"] }]);
    expect(both.breaker).toMatchObject({ openMs: 5000, maxOpenMs: 6000 });
  });
});

describe("a stored entry that is not valid", () => {
  it("is left out with those that need it, and the others are used", () => {
    const document = `${DOCUMENT.replace("base_url", "base_ulr")}  connect_ms: 4000\n`;
    const config = parse(document);
    expect(config.stored?.leftOut).toEqual([
      { path: ["providers", "acme"], problems: [expect.stringContaining("did you mean base_url?")] },
      { path: ["models", "acme/one"], problems: [expect.stringContaining("there is no such provider")] },
      { path: ["aliases", "gpt-5"], problems: [expect.stringContaining("there is no model acme/one")] },
    ]);
    expect(config.timeouts).toMatchObject({ idleMs: 7000, connectMs: 4000 });
    expect(config.models).toEqual([]);
  });

  it("is named with its line and column", () => {
    expect(problemsOf(DOCUMENT.replace("https:", "ftp:"))).toEqual([
      'stored configuration:3:38: providers.acme.base_url: must be an address, such as "https://…"',
    ]);
  });

  it("does not invalidate the file when a change of the file contradicts it", () => {
    const file = "models: { gpt-5: { provider: alpha, upstream_model: x } }\nsimulator: { enabled: true }";
    const config = parse(DOCUMENT, { file });
    expect(config.models.map(({ id }) => id)).toContain("gpt-5");
    expect(config.models.map(({ id }) => id)).toContain("acme/one");
    expect(config.stored?.leftOut).toMatchObject([{ path: ["aliases", "gpt-5"] }]);
  });

  it("is a model whose name is an alias of the file, and the others are used", () => {
    const file = "aliases: { own: alpha-haiku-4.5 }\nsimulator: { enabled: true }";
    const document = DOCUMENT.replace("models:", "models:\n  own: { provider: acme, upstream_model: x }");
    const config = parse(document, { file });
    expect(config.aliases).toEqual([
      ["own", "alpha-haiku-4.5"],
      ["gpt-5", "acme/one"],
    ]);
    expect(config.models.map(({ id }) => id)).toContain("acme/one");
    expect(config.stored?.leftOut).toMatchObject([
      { path: ["models", "own"], problems: [expect.stringContaining("stored configuration:5:8: models.own")] },
    ]);
  });

  it("of a section leaves the other sections, and the whole document when it cannot be read", () => {
    for (const document of ["a: [", "- a", "providers: 5", "http: { listen: x }"])
      expect(parse(document).stored?.leftOut).toHaveLength(1);
  });
});

describe("a stored provider", () => {
  const provider = (entry: string, parts?: Parts) => problemsOf(`providers: { acme: ${entry} }`, parts);

  it.each([
    ["dialect: openai, api_keys: [abc]", "api_keys: is for the configuration file only"],
    ['dialect: openai, base_url: "https://${HOST}/v1"', "${NAME} is for the configuration file only"],
    ['dialect: openai, proxy: "http://10.0.0.1:3128"', "proxy: is for the configuration file only"],
    ["dialect: openai, address: 10.0.0.1", "address: is for the configuration file only"],
    ["dialect: openai, tls: { ca_file: /etc/passwd }", "tls: is for the configuration file only"],
    ["preset: vertex, project: my-project, region: global, credential_file: /etc/passwd", "credential_file: is for"],
    ["dialect: openai, account_credentials: allowed", "account_credentials: is for the configuration file only"],
    ["dialect: openai, headers: { x-api-token: abc }", "may be a secret"],
    [
      'dialect: openai, base_url: "http://127.0.0.1:1/v1", allow_private: true',
      "private addresses need stored_configuration",
    ],
    ["preset: ollama", "preset: private addresses need stored_configuration.allow_private"],
    ['dialect: openai, base_url: "http://127.0.0.1:1/v1"', "allow_private"],
    ["dialect: openai, __proto__: { a: 1 }", "this cannot be a name"],
  ])("may not have { %s }", (entry, problem) => {
    const problems = provider(`{ ${entry} }`, { credentials: [] });
    expect(problems.join("\n")).toContain(problem);
    expect(parse(`providers: { acme: { ${entry} } }`, { credentials: [] }).stored?.leftOut).toHaveLength(1);
  });

  it("may have a private address where the operator allows it", () => {
    const file = "stored_configuration: { allow_private: true }";
    expect(provider("{ preset: ollama }", { file, credentials: [] })).toEqual([]);
  });

  it.each(["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.1.1]", "[fe80::1]", "100.100.100.200", "2852039166"])(
    "never has the address %s of a cloud's metadata",
    (host) => {
      const file = "stored_configuration: { allow_private: true }";
      const entry = `{ dialect: openai, base_url: "http://${host}/v1", allow_private: true, headers: { x-a: b } }`;
      expect(provider(entry, { file, credentials: [] }).join()).toContain("base_url: this is a link-local address");
    },
  );

  it.each([
    "%YAML 1.1\n---\naliases: { <<: { a: m } }",
    "aliases: { <<: { a: m } }",
    "aliases: { !!merge <<: { a: m } }",
    "aliases: { a: &name m, b: *name }",
    "aliases: !!omap [a: m]",
    "aliases: { [a]: m }",
  ])("says by its text what it is, as %j does not", (document) => {
    expect(() => problemsOf(document)).toThrow("for the configuration file only");
    expect(parse(document).stored?.leftOut).toMatchObject([{ path: [] }]);
  });

  it("lacks a credential without that of its preset", () => {
    const config = parse("providers: { acme: { preset: mistral } }", { credentials: [] });
    expect(config.providers).toMatchObject([{ lack: "missing" }]);
    const own = parse("providers: { acme: { preset: mistral, headers: { x-a: b } } }", { credentials: [] });
    expect(own.providers).toMatchObject([{ lack: undefined }]);
  });

  it("never has the credential that its preset names in the environment", () => {
    const document = 'providers: { acme: { preset: openai, base_url: "https://elsewhere.example/v1" } }';
    const config = parse(document, { env: { OPENAI_API_KEY: KEY }, credentials: [] });
    expect(config.providers).toMatchObject([{ name: "acme", apiKeys: [] }]);
  });

  it("has its credential only at the address for which it was given", () => {
    const config = parse(DOCUMENT.replace("api.acme.example", "elsewhere.example"));
    expect(config.providers).toMatchObject([{ apiKeys: [], lack: "other address" }]);
    expect(config.stored?.leftOut).toEqual([]);
  });

  it("has no credential that names a file", () => {
    const credentials = [{ ...ACME, apiKeys: ["file:/etc/passwd"] }];
    expect(problemsOf(DOCUMENT, { credentials }).join()).toContain("cannot be the name of a file");
  });

  it("lacks a credential that cannot be decrypted, and one that its dialect needs", () => {
    expect(parse(DOCUMENT, { credentials: [{ ...ACME, apiKeys: undefined }] }).providers).toMatchObject([
      { apiKeys: [], lack: "unreadable" },
    ]);
    const document = "providers: { acme: { preset: anthropic } }";
    expect(parse(document, { credentials: [] }).providers).toMatchObject([{ apiKeys: [], lack: "missing" }]);
  });

  it("uses the machine's identity at the cloud only", () => {
    const bedrock = "preset: bedrock, region: eu-central-1";
    expect(provider(`{ ${bedrock} }`, { credentials: [] })).toEqual([]);
    const elsewhere = provider(`{ ${bedrock}, base_url: "https://elsewhere.example" }`, { credentials: [] });
    expect(elsewhere.join()).toContain("the machine's identity is used");
  });
});
