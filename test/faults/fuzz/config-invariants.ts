import { validateHeaderName, validateHeaderValue } from "node:http";
import { isLoopback, privateReason } from "../../../src/config/addresses.ts";
import { ConfigError } from "../../../src/config/config-error.ts";
import type { Config, ModelConfig, ProviderConfig } from "../../../src/config/config.ts";
import { parseConfig } from "../../../src/config/parse.ts";
import { listSettings, redactConfig } from "../../../src/config/settings.ts";
import { type ConfigInput, SECRETS } from "./config-inputs.ts";

/** Result of a document. */
export interface ConfigOutcome {
  readonly ended: "loaded" | "refused";
  readonly flaw: string | undefined;
}

const FILE = "parley.yaml";
/** A place in the file or a variable, then the error. */
const LINE = /^(parley\.yaml:([1-9]\d*):[1-9]\d*: |[A-Z][A-Z_]*: )\S/;
/** Control characters of a terminal. */
const CONTROL = /(?!\n)[\p{Cc}\u202a-\u202e]/u;

/** Loads a document as the product does. */
export function readConfig(input: ConfigInput): ConfigOutcome {
  let config: Config;
  try {
    config = parseConfig({ file: FILE, text: input.text, env: input.env });
  } catch (error) {
    return { ended: "refused", flaw: flawOfRefusal(error, input) };
  }
  if (input.refusal !== undefined) return { ended: "loaded", flaw: `accepted, and not refused: ${input.refusal}` };
  const shown = input.isOrderly ? JSON.stringify([redactConfig(config), listSettings(config)]) : "";
  return { ended: "loaded", flaw: secretIn(shown) ?? flawOfConfig(config) };
}

function flawOfRefusal(error: unknown, { text, refusal }: ConfigInput): string | undefined {
  if (!(error instanceof ConfigError)) return `no ConfigError: ${error instanceof Error ? error.stack : String(error)}`;
  const { lines, message } = error;
  if (lines.length === 0) return "a refusal of nothing";
  const last = text.split(/\r\n|[\r\n]/).length;
  const misplaced = lines.find((line) => Number(LINE.exec(line)?.[2] ?? (LINE.test(line) ? 1 : last + 1)) > last);
  if (misplaced !== undefined) return `a line without a place: ${misplaced}`;
  if (/\n\s+at /.test(message)) return `a stack trace: ${message}`;
  if (CONTROL.test(message)) return `control characters: ${JSON.stringify(message)}`;
  if (refusal !== undefined && !refusal.test(message)) return `it does not say ${refusal}: ${message}`;
  return secretIn(message);
}

function secretIn(text: string): string | undefined {
  return Object.values(SECRETS).some((secret) => text.includes(secret)) ? `a secret: ${text}` : undefined;
}

/** Returns violations of the invariants of a valid configuration. */
function flawOfConfig(config: Config): string | undefined {
  const { http, grpc, operations, workers, retries, breaker, providers, models } = config;
  const flaws = [
    ...flawsOfNumbers(config, ""),
    ...[http, grpc, operations].flatMap(({ listen: { host, port } }) =>
      host !== "" && Number.isInteger(port) && port <= 65_535 ? [] : [`the address ${host}:${port}`],
    ),
    ...(isLoopback(operations.listen.host) ? [] : [`operations at ${operations.listen.host}`]),
    ...(Number.isInteger(workers) && workers >= 1 && workers <= 128 ? [] : [`${workers} workers`]),
    ...(retries.baseMs <= retries.capMs ? [] : ["retries that begin above their cap"]),
    ...(breaker.openMs <= breaker.maxOpenMs ? [] : ["rests that begin above their most"]),
    ...(models.length > 0 ? [] : ["no model"]),
    ...(new Set(providers.map(({ name }) => name)).size === providers.length ? [] : ["a provider twice"]),
    ...providers.flatMap(flawsOfProvider),
    ...models.flatMap((model) => flawsOfModel(model, providers)),
    ...(Object.isFrozen(config) && Object.isFrozen(models[0]) ? [] : ["not frozen"]),
  ];
  return flaws.length === 0 ? undefined : `accepted with ${flaws.join(", ")}`;
}

/** Checks that every number is finite and not negative. */
function flawsOfNumbers(value: unknown, path: string): string[] {
  if (typeof value === "number") return Number.isFinite(value) && value >= 0 ? [] : [`${path}: ${value}`];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => flawsOfNumbers(inner, `${path}.${key}`));
}

function flawsOfProvider(provider: ProviderConfig): string[] {
  if (provider.simulated) return [];
  const { name, baseUrl, allowPrivate, headers, apiKeys } = provider;
  const flaws: string[] = [];
  const url = URL.parse(baseUrl);
  if (url === null || !/^https?:$/.test(url.protocol)) flaws.push(`${name} at ${baseUrl}`);
  else if (!allowPrivate && privateReason(url) !== undefined) flaws.push(`${name} at a private address`);
  try {
    for (const [header, value] of Object.entries(headers)) {
      validateHeaderName(header);
      validateHeaderValue(header, value);
    }
    for (const key of apiKeys) validateHeaderValue("authorization", key);
  } catch (error) {
    flaws.push(`${name}: ${String(error)}`);
  }
  if (apiKeys.includes("")) flaws.push(`${name} with an empty key`);
  return flaws;
}

function flawsOfModel(model: ModelConfig, providers: readonly ProviderConfig[]): string[] {
  const { id, provider, contextWindow, maxOutputTokens, defaultMaxTokens, price, created, capabilities, modalities } =
    model;
  const { tiers = [], fees, ...prices } = price ?? {};
  const whole = [contextWindow, maxOutputTokens, defaultMaxTokens, created, ...Object.values(prices)];
  for (const tier of tiers) whole.push(...Object.values(tier));
  const counted = [...Object.values(fees ?? {}), ...Object.values(model.maxToolUses)];
  whole.push(...counted.filter((number) => number !== undefined));
  const flaws: string[] = [];
  if (!providers.some(({ name }) => name === provider)) flaws.push(`${id} of ${provider}`);
  if (whole.some((number) => !Number.isSafeInteger(number))) flaws.push(`${id} with ${whole.join("/")}`);
  // Embeddings have no output tokens.
  const least = modalities.output.includes("embedding") ? 0 : 1;
  if (defaultMaxTokens > maxOutputTokens || defaultMaxTokens < least)
    flaws.push(`${id} with a default of ${defaultMaxTokens}`);
  const [from, to] = capabilities.reasoningBudget;
  if (from > to) flaws.push(`${id} with a budget of ${from} to ${to}`);
  return flaws;
}
