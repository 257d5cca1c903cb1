import { stringify } from "yaml";
import { VARIABLE_SETTINGS } from "../../../src/config/environment.ts";
import { damage } from "./damage.ts";
import { mutateJson } from "./json-mutations.ts";
import { toTree, writeTree } from "./json-tree.ts";
import type { Random } from "./random.ts";

/** Secrets in the documents or the environment: no message and no output may contain one. */
export const SECRETS = {
  inFile: "planted-provider-key-8Kd2",
  header: "planted-header-value-Zq41",
  password: "planted-password-Wm77",
  inEnvironment: "planted-environment-key-Tt05",
} as const;

export const ENVIRONMENT = { ALPHA_API_KEY: SECRETS.inEnvironment, EMPTY: "" };

/** A document with its environment, and whether it must be refused. */
export interface ConfigInput {
  readonly text: string;
  readonly env: Readonly<Record<string, string>>;
  /** Text that the refusal must contain; undefined when the document may be valid. */
  readonly refusal: RegExp | undefined;
  /** Whether secrets are only in fields for secrets. */
  readonly isOrderly: boolean;
}

type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

const LOCAL = { dialect: "openai", base_url: "http://127.0.0.1:9/v1", allow_private: true };

/** Valid documents that have every section between them. */
const DOCUMENTS: readonly Plain[] = [
  {
    http: { listen: "127.0.0.1:8081", cors_origins: ["https://app.example"], trusted_proxies: ["10.0.0.0/8", "::1"] },
    grpc: { listen: "0.0.0.0:50052", allow_public: true, max_receive_mib: 8, max_send_mib: 0.5 },
    operations: { listen: "[::1]:9464" },
  },
  {
    providers: { alpha: { api_keys: ["${ALPHA_API_KEY}"], headers: { "x-team": SECRETS.header } } },
    timeouts: { connect_ms: 100, first_content_ms: 200, idle_ms: 300, total_ms: 400 },
  },
  {
    providers: { local: { ...LOCAL, api_keys: [SECRETS.inFile], timeouts: { idle_ms: 5 } } },
    models: {
      small: {
        provider: "local",
        upstream_model: "s",
        context_window: 8192,
        max_output_tokens: 1024,
        default_max_tokens: 100,
        created: "2026-01-31",
        modalities: { input: ["text", "image"], output: ["text"] },
        price: { input: 0.5, output: 2, cached_input: 0.1 },
        capabilities: { tools: false, reasoning: "budget", reasoning_budget: [1, 2], max_temperature: 1.5 },
      },
    },
  },
  {
    database: { url: `postgres://parley:${SECRETS.password}@db.example:5432/parley` },
    redis: { url: `rediss://:${SECRETS.password}@redis.example:6379` },
    workers: 2,
    data_dir: "./data",
    sign_up: "closed",
    log: { level: "warn" },
    simulator: { enabled: true, tokens_per_second: 1000, first_token_ms: 0 },
  },
  {
    limits: { requests_per_minute: "unlimited", tokens_per_minute: 5, monthly_budget_usd: 12.5, burst_seconds: 60 },
    ledger: { retention_days: 30, durability: "interval" },
    shutdown: { delay_ms: 0, drain_ms: 1000 },
    retries: { base_ms: 50, cap_ms: 500 },
    breaker: { failures: 3, open_ms: 1000, max_open_ms: 10_000 },
  },
];

/** Maps whose keys the file chooses: any other name is valid too. */
const NAMED = new Set(["providers", "models", "headers"]);

/** Draws a document that is damaged at random, or has an error that must be detected. */
export function configInput(random: Random): ConfigInput {
  const document = random.pick(DOCUMENTS);
  const kind = random.below(100);
  const plain = { env: ENVIRONMENT, refusal: undefined, isOrderly: true };
  if (kind < 35) {
    const bytes = damage(Buffer.from(write(document, random)), random);
    return { ...plain, text: bytes.toString(), isOrderly: false };
  }
  if (kind < 55) return { ...plain, text: writeTree(mutateJson(toTree(document), random)), isOrderly: false };
  if (kind < 65) return { ...plain, text: withYaml(write(document, random), random), isOrderly: false };
  if (kind < 70)
    return {
      ...plain,
      text: write(document, random),
      env: { ...ENVIRONMENT, ...strangeVariable(random) },
      isOrderly: false,
    };
  if (kind < 72) return { ...plain, text: repeatKey(document), refusal: /is written twice/ };
  const { value, refusal } = misplace(document, random, false);
  return { ...plain, text: write(value, random), refusal };
}

/** Formats a document as YAML of any style, including JSON. */
function write(value: Plain, random: Random): string {
  const style = random.below(4);
  if (style === 0) return JSON.stringify(value);
  if (style === 1) return JSON.stringify(value, null, 2);
  const text = stringify(value, { lineWidth: 0, defaultStringType: style === 2 ? "PLAIN" : "QUOTE_SINGLE" });
  return random.percent(20) ? text.replaceAll("\n", "\r\n") : text;
}

/** Adds an invalid value at a random place. */
function misplace(value: Plain, random: Random, isNamed: boolean): { value: Plain; refusal: RegExp } {
  if (Array.isArray(value)) {
    const at = random.below(value.length);
    const inner = misplace(value[at]!, random, false);
    return { value: value.with(at, inner.value), refusal: inner.refusal };
  }
  if (typeof value !== "object" || value === null) return misplaceLeaf(value, random);
  if (!isNamed && random.percent(15)) {
    const key = random.pick([
      "unheard_of",
      "Listen",
      "apikey",
      "__proto__",
      "constructor",
      "0",
      "日本",
      "\u001b[31m",
      "null",
    ]);
    const changed = { ...value };
    Object.defineProperty(changed, key, { value: {}, enumerable: true });
    return { value: changed, refusal: key === "__proto__" ? /this cannot be a name/ : /unknown key/ };
  }
  const key = random.pick(Object.keys(value));
  const inner = misplace(value[key]!, random, NAMED.has(key));
  return { value: { ...value, [key]: inner.value }, refusal: inner.refusal };
}

function misplaceLeaf(value: null | boolean | number | string, random: Random): { value: Plain; refusal: RegExp } {
  const other: Plain[] = [null, [], {}, [[1]]];
  if (typeof value === "string") {
    if (random.percent(30))
      return { value: random.pick(["${NOT_SET}", "a${EMPTY}", "${", "${1a}"]), refusal: /variable/ };
    // A number is valid in place of "unlimited".
    const numbers = value === "unlimited" ? [] : [7, 1.5];
    return { value: random.pick([...other, ...numbers, true]), refusal: /must be/ };
  }
  if (typeof value === "boolean") return { value: random.pick([...other, "yes", "on", 1, 0]), refusal: /must be/ };
  return { value: random.pick([...other, "7", "abc", true, -1, -Infinity, Infinity, Number.NaN]), refusal: /must be/ };
}

/** Repeats the last section. */
function repeatKey(document: Plain): string {
  const text = stringify(document);
  const at = text.lastIndexOf("\n", text.search(/\n(?:[^\n]*\n?){0}$/) - 1);
  const sections = text.split(/^(?=\S)/m);
  return at === -2 ? text : text + sections.at(-1)!;
}

/** Other YAML features: tags, anchors, merge keys, documents, directives, number formats and line breaks. */
const PIECES = [
  "%YAML 1.1\n---\n",
  "---\n",
  "...\n",
  "\uFEFF",
  "# comment\n",
  "a: &a [1]\nb: *a\n",
  "x: &x {a: *x}\n",
  "<<: {workers: 3}\n",
  "<<: *nowhere\n",
  "? [a, b]\n: c\n",
  "? {a: b}\n: c\n",
  ": no key\n",
  "!!binary x: y\n",
  "!foo bar\n",
  "workers: 0x2\n",
  "workers: 0o2\n",
  "workers: 1_0\n",
  "workers: 2.0\n",
  "workers: !!str 2\n",
  'workers: !!int "2"\n',
  "sign_up: !!python/object:os.system x\n",
  "data_dir: |\n  a\n  b\n",
  "data_dir: >-\n  ${EMPTY}\n",
  "log: {level: ~}\n",
  "log: {level: no}\n",
  "\t- a\n",
  "null: 1\n",
  "1: 1\n",
  "true: 1\n",
  "2026-01-01: 1\n",
  "@a: b\n",
  "`a`: b\n",
  "'",
  '"',
  "\u0000",
  "\u0085",
  "\u2028",
  "\u001b]0;title\u0007: 1\n",
  "{{{{{{",
  `${"- ".repeat(3000)}a\n`,
  `${"[".repeat(3000)}\n`,
];

function withYaml(text: string, random: Random): string {
  const lines = text.split(/(?<=\n)/);
  lines.splice(random.below(lines.length + 1), 0, random.pick(PIECES));
  return lines.join("");
}

function strangeVariable(random: Random): Record<string, string> {
  const names = [
    ...VARIABLE_SETTINGS.map(({ variable }) => variable),
    "ALPHA_API_KEY",
    "BETA_API_KEY",
    "BETA_BASE_URL",
  ];
  const values = [
    "",
    " ",
    "0",
    "-1",
    "1e3",
    "99999999999",
    "127.0.0.1:1",
    "0.0.0.0:1",
    "::",
    "http://a",
    `postgres://u:${SECRETS.password}@`,
    `redis://:${SECRETS.password}@[`,
    "a\nb",
    "日本",
    "${ALPHA_API_KEY}",
    "a".repeat(5000),
    "{}",
    `["${SECRETS.password}"`,
    `[{"name": "${SECRETS.password}", "key": 1}]`,
  ];
  return { [random.pick(names)]: random.pick(values) };
}
