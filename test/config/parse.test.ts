import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { type Environment, VARIABLE_SETTINGS } from "../../src/config/environment.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { redactConfig } from "../../src/config/settings.ts";
import type { Capabilities } from "../../src/core/provider.ts";
import { errorOf } from "../support/errors.ts";

const KEY = "a-long-enough-credential";

function parse(text: string, env: Environment = {}) {
  return parseConfig({ file: "parley.yaml", text, env });
}

const refusalOf = (text: string, env: Environment = {}): string => errorOf(ConfigError, () => parse(text, env)).message;

/** A provider with this setting. */
function oidc(setting: string): string {
  const others = ["issuer: 'https://id.example'", "client_id: parley", "client_secret: 0Z7-of-the-client"];
  const [name] = setting.split(":");
  return `sign_in: { oidc: { ${[setting, ...others.filter((other) => !other.startsWith(`${name}:`))].join(", ")} } }`;
}

describe("a configuration without a file", () => {
  const config = parseConfig({ file: undefined, text: "", env: {} });

  it("listens on loopback only and simulates all providers", () => {
    expect(config.http.listen).toEqual({ host: "127.0.0.1", port: 8080 });
    expect(config.grpc).toEqual({
      listen: { host: "127.0.0.1", port: 50051 },
      maxReceiveBytes: 33 * 1024 * 1024,
      maxSendBytes: 64 * 1024 * 1024,
      maxConnectionAgeMs: 3_600_000,
    });
    expect(config.operations.listen).toEqual({ host: "127.0.0.1", port: 9464 });
    expect(config.providers).toEqual([
      { name: "alpha", dialect: "anthropic", simulated: true },
      { name: "beta", dialect: "gemini", simulated: true },
      { name: "gamma", dialect: "openai", simulated: true },
    ]);
  });

  it("has the eight built-in models", () => {
    expect(config.models.map(({ id }) => id)).toEqual([
      "alpha-opus-4.5",
      "alpha-sonnet-4.5",
      "alpha-haiku-4.5",
      "beta-3-pro-preview",
      "beta-3-flash",
      "beta-3-pro-image-preview",
      "beta-embedding-001",
      "gamma-embedding-3-small",
    ]);
    const image = config.models.find(({ id }) => id === "beta-3-pro-image-preview");
    expect(image).toMatchObject({
      description: "Multimodal with native image generation",
      modalities: { output: ["text", "image"] },
      stage: "preview",
      shutdown: undefined,
      price: { input: 2_000_000, output: 12_000_000, imageOutput: 120_000_000 },
      timeouts: { firstContentMs: 300_000, connectMs: 5_000 },
    });
    expect(config.models.filter(({ modalities }) => modalities.output.includes("image"))).toEqual([image]);
  });

  it("sets every capability of core's type", () => {
    for (const model of config.models) {
      const capabilities: Capabilities = model.capabilities;
      expect(Object.values(capabilities)).not.toContain(undefined);
      expect(Object.keys(capabilities)).toHaveLength(26);
    }
  });

  it("is frozen", () => {
    expect(() => Object.assign(config.models[0]!.timeouts, { totalMs: 0 })).toThrow(TypeError);
    expect(() => (config.providers as unknown[]).push("x")).toThrow(TypeError);
  });
});

describe("environment variables", () => {
  it("make a provider real when its key is set", () => {
    const config = parseConfig({ file: undefined, text: "", env: { ALPHA_API_KEY: KEY } });
    expect(config.providers[0]).toMatchObject({
      simulated: false,
      baseUrl: "https://api.anthropic.com",
      apiKeys: [KEY],
    });
  });

  it("then leave out the other built-in models, unless the file enables the simulator", () => {
    const env = { ALPHA_API_KEY: KEY };
    const real = parseConfig({ file: undefined, text: "", env });
    expect(real.providers.map(({ name }) => name)).toEqual(["alpha"]);
    expect(real.models.map(({ provider }) => provider)).toEqual(["alpha", "alpha", "alpha"]);
    const mixed = parse("simulator: { enabled: true }", env);
    expect(mixed.providers).toMatchObject([
      { name: "alpha", simulated: false },
      { name: "beta", simulated: true },
      { name: "gamma", simulated: true },
    ]);
    expect(mixed.models).toHaveLength(8);
  });

  it("override the listening addresses and the data directory of a file", () => {
    const config = parse("{http: {listen: '127.0.0.1:1'}, data_dir: /a}", {
      PARLEY_HTTP_LISTEN: "[::1]:2",
      PARLEY_DATA_DIR: "/b",
    });
    expect([config.http.listen, config.dataDir]).toEqual([{ host: "::1", port: 2 }, "/b"]);
  });

  it("are named after every setting, but for those of providers, models and aliases", () => {
    const names = VARIABLE_SETTINGS.map(({ variable }) => variable);
    expect(names).toEqual(expect.arrayContaining(["PARLEY_SIGN_UP", "PARLEY_HTTP_TLS_KEY_FILE", "PARLEY_WORKERS"]));
    expect(names.filter((name) => !/^PARLEY_[A-Z_]+$/.test(name))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => /_(PROVIDERS|MODELS|ALIASES)/.test(name))).toEqual([]);
  });

  it("have the type of their setting", () => {
    const config = parse("{limits: {requests_per_minute: 5}, http: {trusted_proxies: [10.1.0.0/16]}}", {
      PARLEY_LOG_LEVEL: "warn",
      PARLEY_SHUTDOWN_DRAIN_MS: "1000",
      PARLEY_SIMULATOR_TOKENS_PER_SECOND: "0.5",
      PARLEY_LIMITS_REQUESTS_PER_MINUTE: "unlimited",
      PARLEY_HTTP_TRUSTED_PROXIES: '["10.0.0.0/8"]',
      PARLEY_GRPC_TLS_CERT_FILE: "/tls/tls.crt",
      PARLEY_GRPC_TLS_KEY_FILE: "/tls/tls.key",
      PARLEY_ACCESS_ISSUERS: JSON.stringify([
        {
          issuer: "https://issuer.example",
          audience: "parley",
          keys_file: "/keys.json",
          bindings: [{ claims: { sub: "system:serviceaccount:apps:billing" }, key: "key_0123456789abcdef" }],
        },
      ]),
    });
    expect(config).toMatchObject({
      log: { level: "warn" },
      shutdown: { drainMs: 1000 },
      simulator: { tokensPerSecond: 0.5 },
      limits: { requestsPerMinute: undefined },
      http: { trustedProxies: ["10.0.0.0/8"] },
      grpc: { tls: { certFile: "/tls/tls.crt", keyFile: "/tls/tls.key" } },
      access: { issuers: [{ issuer: "https://issuer.example", bindings: [{ key: "key_0123456789abcdef" }] }] },
    });
  });

  it("ignore what orchestrators set for a service of this name", () => {
    const env = { PARLEY_PORT: "tcp://10.0.0.1:8080", PARLEY_SERVICE_HOST: "10.0.0.1", PARLEY_HTTP_PORT: "tcp://x" };
    expect(parse("{}", env)).toEqual(parse("{}"));
  });

  it("do not change a provider that the file configures", () => {
    const config = parse(`providers: { alpha: { api_keys: [${KEY}] } }`, { ALPHA_API_KEY: "another-credential" });
    expect(config.providers[0]).toMatchObject({ apiKeys: [KEY] });
  });

  it.each([
    [{ ALPHA_API_KEY: "" }, "ALPHA_API_KEY: it is set but empty"],
    [{ ALPHA_API_KEY: "changeme" }, "ALPHA_API_KEY: this is a sample"],
    [{ ALPHA_API_KEY: `${KEY}\n` }, "ALPHA_API_KEY: the credential contains a line break"],
    [{ ALPHA_BASE_URL: "https://a.example" }, "ALPHA_BASE_URL: it needs ALPHA_API_KEY"],
    [{ BETA_API_KEY: KEY, BETA_BASE_URL: "http://a.example" }, "BETA_BASE_URL: this is plain http"],
    [{ PARLEY_HTTP_LISTEN: "8080" }, "PARLEY_HTTP_LISTEN: must be host:port"],
    [{ PARLEY_GRPC_LISTEN: "0.0.0.0:50051" }, "PARLEY_GRPC_LISTEN: this address is not loopback"],
    [{ PARLEY_DATABASE_URL: "mysql://long-enough" }, "PARLEY_DATABASE_URL: must be an address such as"],
    [{ PARLEY_HTTP_TRUSTED_PROXIES: "[changeme]" }, "PARLEY_HTTP_TRUSTED_PROXIES: this is not JSON"],
    [{ PARLEY_ACCESS_ISSUERS: '[{"__proto__": "changeme"}]' }, "PARLEY_ACCESS_ISSUERS: this is not JSON"],
    [{ PARLEY_HTTP_CORS_ORIGINS: "changeme" }, "PARLEY_HTTP_CORS_ORIGINS: this is not JSON; write a list as"],
    [{ PARLEY_SHUTDOWN_DRAIN_MS: "changeme" }, "PARLEY_SHUTDOWN_DRAIN_MS: must be a number, not text"],
    [{ PARLEY_LOG_LEVEL: "changeme" }, "PARLEY_LOG_LEVEL: must be one of trace"],
    [{ PARLEY_HTTP_TLS_CERT_FILE: "/changeme" }, "http.tls.key_file: is required"],
    [{ PARLEY_REDIS_URL: "changeme" }, "PARLEY_REDIS_URL: must be an address such as"],
  ])("are named in errors, without their values: %o", (env: Environment, expected) => {
    expect(() => parseConfig({ file: undefined, text: "", env })).toThrow(expected);
    expect(() => parseConfig({ file: undefined, text: "", env })).not.toThrow(/changeme|long-enough/);
  });
});

describe("interpolation", () => {
  const text = 'providers:\n  alpha:\n    api_keys: ["${ALPHA_API_KEY}"]';

  it("replaces variables", () => {
    expect(parse(text, { ALPHA_API_KEY: KEY }).providers[0]).toMatchObject({ apiKeys: [KEY] });
  });

  it.each([
    [undefined, "the environment variable ALPHA_API_KEY is not set"],
    ["", "the environment variable ALPHA_API_KEY is empty"],
    ["two\nlines-of-secret", "(from ${ALPHA_API_KEY}): the credential contains a line break"],
    ["two\r\nlines-of-secret", "(from ${ALPHA_API_KEY}): the credential contains a line break"],
    ["sk-1234", "this is a sample"],
  ])("reports the variable and the place, not the value: %j", (value, expected) => {
    const message = refusalOf(text, { ALPHA_API_KEY: value });
    expect(message).toContain("parley.yaml:3:16: providers.alpha.api_keys[0]");
    expect(message).toContain(expected);
    expect(message).not.toMatch(/lines-of-secret|sk-1234/);
  });

  it("reports a missing variable once", () => {
    expect(refusalOf(text, {}).split("\n")).toHaveLength(2);
  });

  it("refuses a credential that is a variable without braces", () => {
    expect(refusalOf(text.replace("${ALPHA_API_KEY}", "$ALPHA_API_KEY"))).toContain("a variable is written ${NAME}");
  });

  it("refuses a malformed variable", () => {
    expect(refusalOf("data_dir: ${not closed")).toContain("parley.yaml:1:11: data_dir: a variable is written ${NAME}");
  });
});

describe("errors in the file", () => {
  it.each([
    ["http: { lisen: x }", "1:9: http.lisen: unknown key; did you mean listen?"],
    ["http:\n  listen: 5", "2:11: http.listen: must be text, not a number"],
    ["http:", "1:6: http: must be a map, but it is empty"],
    ["HTTP: {}", "1:1: HTTP: unknown key; did you mean http?"],
    ["htpp: {}", "1:1: htpp: unknown key; did you mean http?"],
    ["entirely_unknown: {}", "unknown key; known here: http, grpc"],
    ["database: { url: x }", "1:18: database.url: must be an address such as"],
    ["database: { url: 'postgres://a,b:x/p' }", "1:18: database.url: must be an address such as"],
    [
      "database: { url: 'postgres://a,b/p?target_session_attrs=any' }",
      "1:18: database.url: must be an address such as",
    ],
    ["database: { listen_url: none }", "1:25: database.listen_url: is for a database.url"],
    ["redis: { url: 'http://x' }", "1:15: redis.url: must be an address such as"],
    ["redis: { url: 'redis://a,,b', mode: cluster }", "1:15: redis.url: must be an address such as"],
    ["redis: { url: 'redis://a,b' }", "redis.url: has several hosts, which are for redis.mode: cluster or sentinel"],
    ["redis: { url: 'redis://a/2', mode: cluster }", "redis.url: names a database, and a cluster has none but 0"],
    ["redis: { mode: cluster }", "redis.mode: cluster needs a redis.url"],
    ["redis: { url: 'redis://a', mode: replica }", "redis.mode: must be one of server, cluster, sentinel"],
    ["redis: { url: 'redis://a', mode: sentinel }", "redis.sentinel.master: is required with redis.mode: sentinel"],
    ["redis: { url: 'redis://a', sentinel: { master: m } }", "redis.sentinel: is for redis.mode: sentinel"],
    ["redis: { url: 'redis://a', mode: sentinel, sentinel: { master: 'a b' } }", "must be the name in the Sentinels'"],
    ["limits: { requests_per_minute: many }", "1:32: limits.requests_per_minute: must be a whole number from 1"],
    ["limits: { tokens_per_minute: 0 }", "1:30: limits.tokens_per_minute: must be at least 1"],
    ["limits: { monthly_budget_usd: -1 }", "limits.monthly_budget_usd: must be at least 0"],
    ["sign_up: everybody", "sign_up: must be one of open, invited, closed"],
    ["sign_in: { password: false }", "sign_in.password: can be false only with sign_in.oidc"],
    ["sign_in: { session_hours: 0 }", "sign_in.session_hours: must be at least 1"],
    [oidc("issuer: 'http://id.example'"), "sign_in.oidc.issuer: must begin with https://"],
    [
      oidc("issuer: 'https://id.example/.well-known/openid-configuration'"),
      "sign_in.oidc.issuer: must be the issuer alone",
    ],
    [
      oidc("issuer: 'https://login.microsoftonline.com/common/v2.0'"),
      "sign_in.oidc.issuer: must be the issuer of one tenant",
    ],
    [oidc("client_secret: changeme"), "sign_in.oidc.client_secret: this is a sample"],
    [oidc("scopes: [email]"), 'sign_in.oidc.scopes: must have "openid"'],
    [
      oidc("roles: { staff: member }"),
      "sign_in.oidc.roles.staff: must be one of owner, administrator, developer, viewer, or the ID of a custom role",
    ],
    [oidc("default_role: none"), "sign_in.oidc.default_role: with none, roles needs at least one group"],
    [oidc("domains: ['*.example']"), "sign_in.oidc.domains[0]: must be a domain"],
    [oidc("domains: ['ada@a.example']"), "sign_in.oidc.domains[0]: must be a domain"],
    [
      `${oidc("name: A")}\nhttp: { listen: '0.0.0.0:80', allow_public: true }`,
      "sign_in.oidc: needs http.public_url, the address to which the provider sends people back",
    ],
    ["http: { public_url: 'https://a.example/path' }", "http.public_url: must be an origin"],
    ["http: { trusted_proxies: [10.0.0.0/33] }", "http.trusted_proxies[0]: must be an address or a network"],
    ["http: {}\nhttp: {}", "2:1: this key is written twice"],
    ["providers: { alpha: { api_keys: [aaaaaaaaaaa] }, alpha: {} }", "1:50: this key is written twice"],
    ["timeouts: { connect_ms: .nan }", "timeouts.connect_ms: must be a number, not something else"],
    ["timeouts: { connect_ms: 0 }", "1:25: timeouts.connect_ms: must be at least 1"],
    ["timeouts: { connect_ms: 1.5 }", "timeouts.connect_ms: must be a whole number"],
    ["log: { level: loud }", "log.level: must be one of trace, debug"],
    ["grpc: { listen: '127.0.0.1:8080' }", "choose another port, or write http.grpc: true to share it"],
    ["operations: { listen: '127.0.0.1:8080' }", "http.listen is the same address; choose another port"],
    ["http: { listen: '0.0.0.0:8080' }", "write allow_public: true beside it in the section http"],
    ["http: { listen: '127.0.0.1:70000' }", "must be host:port"],
    ["http: { cors_origins: ['https://a.example/'] }", "http.cors_origins[0]: must be an origin"],
    ["providers: { local: { api_keys: [] } }", "providers.local.dialect: is required: one of anthropic"],
    ["providers: { alpha: {} }", 'providers.alpha.api_keys: is required for the dialect anthropic, such as ["${ALPHA'],
    ["providers: { alpha: { api_keys: ['file:key'] } }", "the path of a file with the key is absolute: file:/run"],
    [
      "providers: { alpha: { api_keys: [x], proxy: proxy.example } }",
      "providers.alpha.proxy: must be the address of an HTTP",
    ],
    ["providers: { alpha: { api_keys: [x], address: a.example } }", "providers.alpha.address: must be an IP address"],
    ["providers: { alpha: { api_keys: [x], tls: { ca_file: ca.pem } } }", "tls.ca_file: must be an absolute path"],
    ["providers: { alpha: { api_keys: [x], tls: { key_file: /k } } }", "tls.cert_file: is required with key_file"],
    ["http: { tls: { cert_file: server.pem, key_file: /k } }", "http.tls.cert_file: must be an absolute path"],
    ["grpc: { tls: { cert_file: /c } }", "grpc.tls.key_file: is required"],
    [
      "operations: { tls: { cert_file: /c, key_file: /k, client_certificates: optional } }",
      "operations.tls.client_ca_file: is required with client_certificates",
    ],
    [
      "http: { tls: { cert_file: /c, key_file: /k, client_crl_file: /crl } }",
      "http.tls.client_ca_file: is required with client_crl_file",
    ],
    ["redis: { tls: { ca_file: /ca } }", "redis.tls: is for a redis.url that begins with rediss://"],
    ["core: { tls: { cert_file: /c } }", "core.tls.key_file: is required with cert_file"],
    ["access: { certificates: [{ name: 'DNS:a', key: key_1 }] }", "needs client_ca_file in http.tls or grpc.tls"],
    ["access: { certificates: [{ name: billing, key: key_1 }] }", 'must be an alternative name such as "URI:spiffe'],
    ["access: { certificates: [{ name: 'DNS:a', key: sk_parley_x }] }", "must be the ID of a key"],
    ["access: { fronts: ['DNS:front'] }", "access.fronts: needs grpc.tls.client_ca_file"],
    ["access: { issuers: [{ issuer: a, audience: b, bindings: [] }] }", "access.issuers[0].bindings"],
    [
      "access: { issuers: [{ issuer: a, audience: b, bindings: [{ claims: { sub: c }, key: key_1 }] }] }",
      "access.issuers[0].keys_url: is required, or keys_file in its place",
    ],
    [
      "access: { issuers: [{ issuer: a, audience: b, keys_file: /k, algorithms: [HS256], bindings: [] }] }",
      "access.issuers[0].algorithms[0]",
    ],
    [
      "access: { issuers: [{ issuer: a, audience: b, keys_url: 'http://a', bindings: [] }] }",
      'keys_url: must be an address such as "https://',
    ],
    [
      "providers: { alpha: { api_keys: [x], base_url: 'http://a', allow_private: true, proxy: 'http://p' } }",
      "providers.alpha.proxy: is for https only, and base_url is plain http",
    ],
    [
      "providers: { alpha: { api_keys: [x], proxy: 'http://p', address: 10.0.0.7 } }",
      "providers.alpha.address: has no effect with a proxy",
    ],
    ["providers: { Alpha: {} }", "1:14: providers.Alpha: a provider's name is"],
    ["providers: { __proto__: {} }", "1:14: providers.__proto__: this cannot be a name"],
    ["models: { beta-3-flash: { provider: bta } }", "there is no such provider; did you mean beta?"],
    ["models: { alpha-opus-4.5: { provider: beta } }", 'models["alpha-opus-4.5"].upstream_model: is required'],
    ["models: { mine: { provider: beta } }", "models.mine.upstream_model: is required"],
    ["simulator: { enabled: false }\nmodels: { beta-3-flash: {} }", "2:11: models.beta-3-flash.provider: there is no"],
    ["models: { beta-3-flash: { price: { input: -1, output: 1 } } }", "price.input: must be at least 0"],
    ["models: { beta-3-flash: { price: { input: 1 } } }", "price.output: is required"],
    [
      "models: { beta-3-flash: { price: { output: 1, web_search: 14 } } }",
      "price.input: is required beside other prices of tokens",
    ],
    [
      "models: { beta-3-flash: { upstream_model: none, price: { web_search: 14 } } }",
      "price.input: is required, because the list price of this model is not known",
    ],
    ["models: { beta-3-flash: { max_tool_uses: { web_search: 0 } } }", "max_tool_uses.web_search: must be at least 1"],
    ['aliases: { "claude-*": beta-3-flush }', "there is no model beta-3-flush; did you mean beta-3-flash?"],
    ["aliases: { beta-3-flash: alpha-opus-4.5 }", "aliases.beta-3-flash: is the ID of a model already"],
    ['aliases: { "*-mini": beta-3-flash }', "an alias is the ID of a model, or the beginning of one and *"],
    [
      "models: { beta-3-flash: { price: { input: 1, output: 2, tiers: [{ above: 10, input: 2 }] } } }",
      "price.tiers[0].output: is required, because the price for shorter prompts has it",
    ],
    [
      "models: { beta-3-flash: { price: { input: 1, output: 2, tiers: [{ above: 9, input: 2, output: 2 }, { above: 9, input: 3, output: 3 }] } } }",
      "price.tiers[1].above: must be more than in the tier before it",
    ],
    ["models: { beta-3-flash: { created: yesterday } }", "must be a date, such as 2025-11-24"],
    ["models: { beta-3-flash: { default_max_tokens: 99999 } }", "must be at most max_output_tokens"],
    ["models: { beta-3-flash: { capabilities: { toools: true } } }", "unknown key; did you mean tools?"],
    ["[]", "1:1: it must be a map of sections"],
    ["", "1:1: the file is empty"],
    ["a: [", "bracket is not closed"],
    ["a: 1\n---\nb: 2", "2:1: there is a second document"],
    ["http: !secret {}", "1:7: this is not valid YAML"],
  ])("%j is refused with its place and the remedy", (text, expected) => {
    const message = refusalOf(text);
    expect(message).toContain(expected);
    expect(message).toMatch(/parley\.yaml:\d+:\d+: /);
    expect(message).not.toMatch(/^\s+at /m);
  });

  it("with a credential as a key name do not contain it", () => {
    const message = refusalOf(`providers: { alpha: { api_keys: [x], ${KEY}-of-ours } }`);
    expect(message).toContain("1:38: providers.alpha.a-long-enoug…: unknown key");
    expect(message).not.toContain(KEY);
  });

  it("are all reported at once", () => {
    const message = refusalOf("http: { lisen: x }\ngrpc: { port: 1 }\nlog: { level: loud }");
    expect(message.split("\n")).toHaveLength(4);
  });
});

const OF_LOCAL = "models: { tiny: { provider: local, upstream_model: t } }";

describe("one port for HTTP and gRPC", () => {
  it("is off by default, and leaves the address of gRPC unused", () => {
    expect(parse("{}").http.grpc).toBe(false);
    const shared = "http: { listen: '127.0.0.1:50051', grpc: true }";
    expect(parse(shared).http).toMatchObject({ grpc: true, listen: { port: 50_051 } });
    const tls = "cert_file: /c, key_file: /k, client_ca_file: /ca";
    expect(parse(`http: { grpc: true, tls: { ${tls} } }\naccess: { fronts: ['DNS:front'] }`).access.fronts).toEqual([
      "DNS:front",
    ]);
  });
});

describe("providers", () => {
  it("may have no model, since models can be stored", () => {
    const text = "providers: { local: { dialect: openai, base_url: 'https://a.example/v1' } }";
    expect(parse(text).models).toEqual([]);
  });

  it.each([
    ["http://api.example.com", "plain http"],
    ["https://127.0.0.1", "a private address"],
    ["https://0x7f.1", "a private address"],
    ["https://[::ffff:7f00:1]", "a private address"],
    ["https://10.1.2.3", "a private address"],
    ["https://169.254.169.254", "a private address"],
    ["https://[fd00::1]", "a private address"],
    ["https://localhost.", "a name of a private network"],
    ["https://ollama:11434", "a name of a private network"],
  ])("at %s need allow_private", (baseUrl, reason) => {
    const entry = `dialect: openai, base_url: "${baseUrl}"`;
    expect(refusalOf(`providers: { local: { ${entry} } }`)).toContain(
      `${reason}; if that is intended, write allow_private`,
    );
    const config = parse(`providers: { local: { ${entry}, allow_private: true } }\n${OF_LOCAL}`);
    expect(config.providers[0]).toMatchObject({ name: "local", baseUrl, allowPrivate: true, apiKeys: [] });
  });

  it.each(["ftp://a.example", "a.example", "https://u:secret@a.example", "https://a.example/?key=secret"])(
    "cannot be at %s",
    (baseUrl) => {
      const message = refusalOf(`providers: { local: { dialect: openai, base_url: "${baseUrl}" } }`);
      expect(message).toContain("1:50: providers.local.base_url: must");
      expect(message).not.toContain("secret");
    },
  );

  it.each([
    ["anthropic", "X-Api-Key: a", "headers.X-Api-Key: this header carries the credential; write that in api_keys"],
    ["gemini", "x-goog-api-key: a", "headers.x-goog-api-key: this header carries the credential"],
    ["openai", "Authorization: a", "headers.Authorization: this header carries the credential"],
    ["anthropic", "authorization: a", "headers.authorization: this is a second credential beside api_keys"],
    ["gemini", "authorization: a", "headers.authorization: this is a second credential beside api_keys"],
    ["openai", "Host: a", "headers.Host: this header is set by Parley itself"],
    ["anthropic", "content-length: a", "headers.content-length: this header is set by Parley itself"],
    ["gemini", "Transfer-Encoding: a", "headers.Transfer-Encoding: this header is set by Parley itself"],
    ["openai", "trailer: a", "headers.trailer: this header is set by Parley itself"],
    ["openai", "x-parley-hops: a", "headers.x-parley-hops: this header is set by Parley itself"],
  ])("of the dialect %s cannot set the header %s", (dialect, header, problem) => {
    const entry = `dialect: ${dialect}, base_url: "https://a.example", api_keys: [${KEY}], headers: { ${header} }`;
    expect(refusalOf(`providers: { local: { ${entry} } }`)).toContain(problem);
  });

  it("take no credentials of accounts where a header may carry their own", () => {
    const of = (more: string): string =>
      `providers: { local: { base_url: "https://a.example", account_credentials: allowed, ${more} } }\n${OF_LOCAL}`;
    const header = "headers: { Api-Key: a }";
    expect(refusalOf(of(`dialect: openai, ${header}`))).toContain(
      "providers.local.account_credentials: is not for a provider without api_keys but with headers, which may carry its credential",
    );
    for (const fine of [
      "dialect: openai",
      `dialect: openai, ${header}, api_keys: [${KEY}]`,
      "dialect: anthropic, headers: { Authorization: a }",
    ])
      expect(parse(of(fine)).providers[0]).toMatchObject({ takesAccountCredentials: true });
  });

  it("are checked only where it is configured", () => {
    const entry = `dialect: openai, base_url: "https://a.example", api_keys: [${KEY}]`;
    const checkedOf = (health: string) =>
      parse(`providers: { local: { ${entry}, health: { ${health} } } }\n${OF_LOCAL}`).providers[0];
    expect(checkedOf("interval_ms: 5000")).toMatchObject({ checkedMs: undefined });
    expect(checkedOf("check: completion")).toMatchObject({ checkedMs: 60_000 });
    expect(checkedOf("check: completion, interval_ms: 5000")).toMatchObject({ checkedMs: 5_000 });
  });

  it("have bounded connections, shared by all accounts by default", () => {
    const entry = `dialect: openai, base_url: "https://a.example", api_keys: [${KEY}]`;
    const of = (connections: string) =>
      parse(`providers: { local: { ${entry}${connections} } }\n${OF_LOCAL}`).providers[0];
    expect(of("")).toMatchObject({
      connections: { max: 4_096, maxAgeMs: 300_000, maxRequests: 1_000, perAccount: false, http2: false },
    });
    expect(
      of(", connections: { max: 8, max_age_ms: 1000, max_requests: 1, per_account: true, http2: true }"),
    ).toMatchObject({
      connections: { max: 8, maxAgeMs: 1_000, maxRequests: 1, perAccount: true, http2: true },
    });
    expect(refusalOf(`providers: { local: { ${entry}, connections: { max: 0 } } }`)).toContain(
      "providers.local.connections.max: must be at least 1",
    );
  });

  it("may have their keys in files, which are no secrets of the configuration", () => {
    const config = parse("providers: { alpha: { api_keys: ['file:/run/x'] } }");
    expect(config.providers[0]).toMatchObject({ apiKeys: ["file:/run/x"] });
    expect(config.secretsInFile).toBe(false);
  });

  it("may have their keys in files, as the client secret of sign_in.oidc", () => {
    expect(parse(oidc("client_secret: 'file:/run/x'")).secretsInFile).toBe(false);
    expect(parse(oidc("name: A")).secretsInFile).toBe(true);
  });

  it("may have another kind of credential in a header in place of api_keys", () => {
    const entry = `dialect: anthropic, base_url: "https://a.example", headers: { Authorization: Bearer ${KEY} }`;
    expect(parse(`providers: { local: { ${entry} } }\n${OF_LOCAL}`).providers[0]).toMatchObject({
      headers: { authorization: `Bearer ${KEY}` },
    });
  });

  it("redirect the built-in models when only the provider is configured", () => {
    const url = "https://proxy.example/anthropic/";
    const config = parse(`providers: { alpha: { base_url: "${url}", api_keys: [${KEY}], headers: { X-Team: a } } }`);
    expect(config.providers[0]).toMatchObject({
      dialect: "anthropic",
      baseUrl: "https://proxy.example/anthropic",
      headers: { "x-team": "a" },
    });
    expect(config.models.filter(({ provider }) => provider === "alpha")).toHaveLength(3);
  });
});

describe("models", () => {
  it("of a private server may have any credential, those of a public one no sample", () => {
    const entry = "dialect: openai, base_url: 'https://a.example/v1', api_keys: [test]";
    expect(refusalOf(`providers: { local: { ${entry} } }`)).toContain("local.api_keys[0]: this is a sample");
    expect(parse(`providers: { local: { ${entry}, allow_private: true } }\n${OF_LOCAL}`).providers[0]).toMatchObject({
      apiKeys: ["test"],
    });
  });

  it("of a file change only the settings they name", () => {
    const entry = "price: { input: 4.2, output: 9 }, capabilities: { seed: true }";
    const config = parse(`models: { alpha-opus-4.5: { ${entry} } }`);
    expect(config.models[0]).toMatchObject({
      upstreamModel: "claude-opus-4-5-20251101",
      price: { input: 4_200_000, cachedInput: 4_200_000, imageOutput: 9_000_000 },
      capabilities: { seed: true, maxTemperature: 1 },
    });
  });

  it("have prompt-cache write prices by their dialect, which the file overrides", () => {
    const priced = (entry: string, id: string): object | undefined =>
      parse(`models: { ${id}: { price: { input: 4, output: 9${entry} } } }`).models.find((model) => model.id === id)
        ?.price;
    expect(priced("", "alpha-opus-4.5")).toMatchObject({ cacheWrite: 5_000_000, cacheWriteHour: 8_000_000 });
    expect(priced("", "beta-3-flash")).toMatchObject({ cacheWrite: 4_000_000, audioInput: 4_000_000 });
    const stated = ", cache_write: 6, cache_write_1h: 7, audio_input: 8, audio_output: 10";
    expect(priced(stated, "alpha-opus-4.5")).toMatchObject({
      cacheWrite: 6_000_000,
      cacheWriteHour: 7_000_000,
      audioInput: 8_000_000,
      audioOutput: 10_000_000,
    });
  });

  it("have the list price with the fees that the file adds", () => {
    const { price, maxToolUses } = parse(
      "models: { beta-3-flash: { price: { web_search: 14, request: 0.5 }, max_tool_uses: { web_search: 8 } } }",
    ).models.find(({ id }) => id === "beta-3-flash")!;
    const listed = parse("{}").models.find(({ id }) => id === "beta-3-flash")!.price!;
    expect(price).toEqual({ ...listed, fees: { ...listed.fees, webSearches: 14_000_000_000, requests: 500_000_000 } });
    expect(maxToolUses).toEqual({ webSearches: 8 });
  });

  it("may have other prices for long prompts", () => {
    const tiers = "tiers: [{ above: 200000, input: 8, output: 12 }]";
    const config = parse(`models: { alpha-opus-4.5: { price: { input: 4, output: 9, ${tiers} } } }`);
    expect(config.models[0]?.price).toMatchObject({
      input: 4_000_000,
      tiers: [{ abovePromptTokens: 200000, input: 8_000_000, cacheWriteHour: 16_000_000, imageOutput: 12_000_000 }],
    });
  });

  it("take timeouts from the model, else the provider, else the general section", () => {
    const config = parse(
      [
        "timeouts: { connect_ms: 1, idle_ms: 1, total_ms: 1 }",
        `providers: { beta: { api_keys: [${KEY}], timeouts: { idle_ms: 2, total_ms: 2 } } }`,
        "models: { beta-3-flash: { timeouts: { total_ms: 3 } } }",
      ].join("\n"),
    );
    const flash = config.models.find(({ id }) => id === "beta-3-flash");
    expect(flash?.timeouts).toEqual({ connectMs: 1, firstContentMs: 60_000, idleMs: 2, totalMs: 3, settleMs: 2_000 });
  });

  it("have a stage, and a day on which they go away", () => {
    const stageOf = (entry: string) => {
      const config = parse(`models: { beta-3-flash: { ${entry} } }`);
      const { stage, shutdown } = config.models.find(({ id }) => id === "beta-3-flash")!;
      return [stage, shutdown];
    };
    expect(stageOf("description: a")).toEqual(["stable", undefined]);
    expect(stageOf("stage: preview")).toEqual(["preview", undefined]);
    expect(stageOf("stage: deprecated, shutdown: 2027-03-31")).toEqual(["deprecated", Date.UTC(2027, 2, 31) / 1000]);
  });

  it.each([
    ["stage: beta", "models.beta-3-flash.stage: "],
    ["shutdown: soon", "models.beta-3-flash.shutdown: must be a date, such as 2025-11-24"],
    ["preview: true", "models.beta-3-flash.preview: "],
    ["modalities: { input: [smell], output: [text] }", "models.beta-3-flash.modalities.input[0]: "],
    ["modalities: { input: [text], output: [text, video] }", "models.beta-3-flash.modalities.output[1]: "],
  ])("are refused with %s", (entry, message) => {
    expect(refusalOf(`models: { beta-3-flash: { ${entry} } }`)).toContain(message);
  });

  it("may read documents and videos", () => {
    const config = parse("models: { beta-3-flash: { modalities: { input: [text, file, video], output: [text] } } }");
    expect(config.models.find(({ id }) => id === "beta-3-flash")?.modalities.input).toEqual(["text", "file", "video"]);
  });

  it("are added with the capabilities of their provider's dialect", () => {
    const config = parse(
      [
        "providers: { local: { dialect: openai, base_url: 'http://127.0.0.1:1/v1', allow_private: true } }",
        "models:",
        "  tiny: { provider: local, upstream_model: t, context_window: 8192, max_output_tokens: 4096 }",
      ].join("\n"),
    );
    expect(config.models.at(-1)).toMatchObject({
      id: "tiny",
      price: undefined,
      defaultMaxTokens: 4096,
      modalities: { input: ["text"], output: ["text"] },
      capabilities: { multipleChoices: true, imageUrls: true },
    });
  });

  it("lose their built-in upstream name and capabilities at another provider", () => {
    const local = "local: { dialect: openai, base_url: 'https://a.example/v1' }";
    const config = parse(
      `providers: { ${local} }\nmodels: { beta-3-pro-image-preview: { provider: local, upstream_model: x } }`,
    );
    expect(config.models.find(({ upstreamModel }) => upstreamModel === "x")).toMatchObject({
      capabilities: { reasoning: "none", imageOptions: false },
    });
    expect(refusalOf(`providers: { ${local} }\nmodels: { beta-3-flash: { provider: local } }`)).toContain(
      "models.beta-3-flash.upstream_model: is required with another provider",
    );
  });

  it("lose the built-in stage and end with another upstream model", () => {
    const alpha = `providers: { alpha: { api_keys: [${KEY}] } }\nmodels: { alpha-sonnet-4.5: `;
    const sonnet = (entry: string) => parse(`${alpha}${entry} }`).models.find(({ id }) => id === "alpha-sonnet-4.5");
    expect(sonnet("{}")).toMatchObject({ stage: "deprecated" });
    expect(sonnet("{ upstream_model: claude-sonnet-4-6 }")).toMatchObject({ stage: "stable", shutdown: undefined });
  });
});

describe("models of embeddings", () => {
  const providers = `providers: { local: { dialect: openai, base_url: 'https://a.example/v1' }, words: { dialect: anthropic, api_keys: [${KEY}] } }`;
  const model = (entry: string, provider = "local"): string =>
    `${providers}\nmodels: { m: { provider: ${provider}, upstream_model: e, modalities: { input: [text], output: [embedding] }, ${entry} } }`;

  it("have no output tokens and no capabilities of completions", () => {
    expect(parse(model("price: { input: 0.02 }")).models.at(-1)).toMatchObject({
      maxOutputTokens: 0,
      defaultMaxTokens: 0,
      price: { input: 20_000, output: 0 },
      capabilities: {
        embeddingDimensions: true,
        tools: false,
        sampling: false,
        reasoning: "none",
        reasoningEfforts: [],
      },
    });
    const fixed = parse(model("capabilities: { embedding_dimensions: false }")).models.at(-1);
    expect(fixed?.capabilities.embeddingDimensions).toBe(false);
  });

  it.each([
    [model("", "words"), "models.m.modalities.output: the dialect anthropic has no embeddings"],
    [model("hedge: { after: p95 }"), "models.m.hedge: is not for models that make embeddings"],
    [model("max_output_tokens: 9"), "models.m.max_output_tokens: is not for models that make embeddings"],
    [model("default_max_tokens: 9"), "models.m.default_max_tokens: is not for models that make embeddings"],
    [model("capabilities: { tools: true }"), "models.m.capabilities.tools: is not for models that make embeddings"],
    [
      model("").replace("[embedding]", "[text, embedding]"),
      "models.m.modalities.output: embedding must be the only entry",
    ],
    [model("").replace("[text]", "[text, image]"), "models.m.modalities.input: must be [text] for embeddings"],
    [
      "models: { beta-3-flash: { capabilities: { embedding_dimensions: true } } }",
      "is only for models with modalities.output: [embedding]",
    ],
  ])("are refused: %#", (text, problem) => {
    expect(refusalOf(text)).toContain(problem);
  });

  const pair = (interchangeable: string): string => `${providers}
models:
  m: { provider: local, upstream_model: e, modalities: { input: [text], output: [embedding] }, interchangeable: ${interchangeable} }
  n: { provider: local, upstream_model: f, modalities: { input: [text], output: [embedding] } }
  t: { provider: local, upstream_model: t }`;

  it("name those that make the same vectors", () => {
    const models = parse(pair("[n]")).models.filter(({ provider }) => provider === "local");
    expect(models.map(({ id, interchangeable }) => [id, interchangeable])).toEqual([
      ["m", ["n"]],
      ["n", []],
      ["t", []],
    ]);
  });

  it.each([
    [pair("[n, t]"), "models.m.interchangeable[1]: t makes no embeddings"],
    [pair("[n, n]"), "models.m.interchangeable[1]: n stands here already"],
    [pair("[m]"), "models.m.interchangeable[0]: is this model itself"],
    [pair("[nn]"), "models.m.interchangeable[0]: there is no model nn; did you mean n?"],
    [
      "models: { beta-3-flash: { interchangeable: [beta-embedding-001] } }",
      "models.beta-3-flash.interchangeable: is only for models that make embeddings",
    ],
  ])("do not name others: %#", (text, problem) => {
    expect(refusalOf(text)).toContain(problem);
  });

  it("that are built in are left out at a provider without embeddings", () => {
    const { models } =
      parse(`providers: { gamma: { dialect: anthropic, api_keys: [${KEY}] }, local: { dialect: openai } }
models: { tiny: { provider: local, upstream_model: t } }`);
    expect(models.map(({ id }) => id)).toEqual(["tiny"]);
  });
});

describe("limits", () => {
  it("have the documented defaults", () => {
    const { limits, burstMs } = parse("{}");
    expect(limits).toEqual({
      requestsPerMinute: 600,
      tokensPerMinute: 2_000_000,
      concurrentRequests: 64,
      monthlyBudgetMicroUsd: undefined,
    });
    expect(burstMs).toBe(60_000);
  });

  it("can be changed, or unlimited", () => {
    const text = "limits: { requests_per_minute: unlimited, monthly_budget_usd: 12.5, burst_seconds: 1 }";
    const { limits, burstMs } = parse(text);
    expect(limits).toMatchObject({ requestsPerMinute: undefined, monthlyBudgetMicroUsd: 12_500_000 });
    expect(burstMs).toBe(1_000);
  });
});

describe("the addresses of PostgreSQL and Redis", () => {
  it("come from the file or the environment, and are redacted", () => {
    const config = parse("redis: { url: 'rediss://:the-password@r:6380/1' }", {
      PARLEY_DATABASE_URL: "postgres:///parley?host=/run/postgresql",
    });
    expect(config).toMatchObject({
      databaseUrl: "postgres:///parley?host=/run/postgresql",
      redis: { url: "rediss://:the-password@r:6380/1", place: { mode: "server" }, tls: {} },
    });
    expect(JSON.stringify(redactConfig(config))).not.toMatch(/the-password|run.postgresql/);
  });

  it("have several hosts for nodes of a cluster or for Sentinels, whose password is redacted too", () => {
    const cluster = parse("redis: { url: 'redis://a:1,b,c:3', mode: cluster }").redis;
    expect(cluster).toMatchObject({ url: "redis://a:1,b,c:3", place: { mode: "cluster" } });
    const config = parse("redis: { url: 'redis://:the-password@a,b:26380/2', mode: sentinel }", {
      PARLEY_REDIS_SENTINEL_MASTER: "rates",
      PARLEY_REDIS_SENTINEL_PASSWORD: "other-password",
    });
    expect(config.redis?.place).toEqual({ mode: "sentinel", master: "rates", password: "other-password" });
    expect(JSON.stringify(redactConfig(config))).not.toMatch(/the-password|other-password/);
    expect(redactConfig(config).redis?.place).toMatchObject({ mode: "sentinel", master: "rates" });
  });
});
