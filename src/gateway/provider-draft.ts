import { randomUUID } from "node:crypto";
import type { Config, RemoteProvider } from "../config/config.ts";
import type { ConfigPath } from "../config/config-error.ts";
import type { ConfigDocument } from "../config/document.ts";
import { type ConfigSource, parseConfig } from "../config/parse.ts";
import { NOTHING_STORED } from "../config/stored.ts";
import { editDocument, readEntryYaml, readStored } from "../config/stored-document.ts";
import { overriddenEntries } from "../config/stored-entries.ts";
import type { OfferedModel } from "../config/imports.ts";
import type { Clock } from "../core/clock.ts";
import { Failure, invalidField } from "../core/failure.ts";
import { listModels } from "./model-imports.ts";
import { adviceOn, testProvider } from "./provider-test.ts";
import { check, checkKeys, invalid, LACKS, withoutPlace } from "./stored-changes.ts";
import { readEntry } from "./stored-edits.ts";

/** A provider to test, which need not be stored. */
export interface ProviderDraft {
  readonly name: string;
  /** YAML; undefined: that of the provider in force. */
  readonly entry: string | undefined;
  /** Empty: those that it has. */
  readonly apiKeys: readonly string[];
  /** Empty: no completion is asked for. */
  readonly upstreamModel: string;
}

/** Failure of a tested provider, and advice. */
interface DraftFailure {
  readonly failure: Failure;
  readonly advice: string | undefined;
}

/** Result of a test. */
export interface DraftTest {
  /** Undefined when there is no list. */
  readonly models: readonly OfferedModel[] | undefined;
  readonly listFailure: DraftFailure | undefined;
  /** Undefined when no completion was asked for. */
  readonly completion: { readonly durationMs: number; readonly failure: DraftFailure | undefined } | undefined;
}

const LIST_LIMIT_MS = 10_000;

interface DraftTestOptions {
  readonly clock: Clock;
  readonly ending: AbortSignal;
  /** Called with the origin of the provider's address before anything is sent there. */
  readonly begin: (address: string) => Promise<void>;
}

/** Asks a provider for its models, and for one token. Throws `invalid_request` for a draft that is not valid. */
export async function testDraft(
  source: ConfigSource,
  draft: ProviderDraft,
  { clock, ending, begin }: DraftTestOptions,
): Promise<DraftTest> {
  const { config, provider, modelId } = configure(source, draft);
  await begin(new URL(provider.baseUrl).origin);
  const failed = (reason: unknown): DraftFailure => {
    const failure = Failure.from(reason);
    if (ending.aborted) throw failure;
    return { failure, advice: adviceOn(failure, provider.host) };
  };
  const [list, completion] = await Promise.all([
    listModels(config, provider, { clock, limitMs: LIST_LIMIT_MS, ending }).catch(failed),
    modelId === undefined ? undefined : testProvider(config, modelId, ending).catch(failed),
  ]);
  return {
    ...("failure" in list ? { models: undefined, listFailure: list } : { models: list, listFailure: undefined }),
    completion:
      completion === undefined || "durationMs" in completion
        ? completion && { durationMs: completion.durationMs, failure: undefined }
        : { durationMs: 0, failure: completion },
  };
}

/** Makes a configuration with only the provider and one model of it. */
function configure(
  source: ConfigSource,
  { name, entry, apiKeys, upstreamModel }: ProviderDraft,
): { readonly config: Config; readonly provider: RemoteProvider; readonly modelId: string | undefined } {
  const { stored = NOTHING_STORED } = source;
  checkKeys(apiKeys, "api_keys");
  const modelId = upstreamModel === "" ? undefined : `test:${randomUUID()}`;
  const model = JSON.stringify({ provider: name, upstream_model: upstreamModel });
  const text = entry === undefined ? undefined : readEntry(entry, "entry");
  const base = entry === undefined ? stored.document : editDocument("", [{ section: "providers", name, entry: text }]);
  if (apiKeys.length > 0 || entry !== undefined) requireStored(source, base, name);
  const document =
    modelId === undefined
      ? base
      : editDocument(base, [{ section: "models", name: modelId, entry: readEntryYaml(model) }]);
  const credentials =
    apiKeys.length === 0
      ? stored.credentials
      : [...stored.credentials.filter((one) => one.provider !== name), { provider: name, address: undefined, apiKeys }];
  const drafted = { ...source, stored: { version: stored.version, document, credentials } };
  const config = text === undefined ? parseConfig(drafted) : parseDraft(drafted, text);
  const provider = config.providers.find((one) => one.name === name);
  if (provider === undefined) throw invalidField("name", `there is no provider ${name}, or it is left out`);
  if (provider.simulated) throw invalidField("name", `${name} is simulated: it has no credential`);
  if (provider.lack !== undefined) throw invalidField("api_keys", LACKS[provider.lack]);
  const models = config.models.filter(({ id }) => id === modelId);
  if (modelId !== undefined && models.length === 0)
    throw invalidField("upstream_model", "cannot be the name of a model");
  return { config: { ...config, providers: [provider], models, routes: [], imports: [] }, provider, modelId };
}

function requireStored(source: ConfigSource, document: string, name: string): void {
  const overridden = overriddenEntries(source, readStored(document).entries);
  if (overridden.some((entry) => entry.section === "providers" && entry.name === name))
    throw invalidField("name", `the configuration file, or the environment, has the provider ${name}`);
}

/** Throws `invalid_request` with the places in the text of the entry. */
function parseDraft(
  source: ConfigSource & { readonly stored: NonNullable<ConfigSource["stored"]> },
  text: ConfigDocument,
): Config {
  const { config, problems } = check(source, []);
  if (config !== undefined && problems.length === 0) return config;
  const fieldOf = ([section, , ...inner]: ConfigPath, atKey: true | undefined): string => {
    if (section === "models") return "upstream_model";
    return inner[0] === "api_keys" ? "api_keys" : `entry${text.locate(inner, atKey ? "key" : "value")}`;
  };
  throw invalid(problems.map((one) => ({ field: fieldOf(one.path, one.atKey), description: withoutPlace(one.line) })));
}
