import type { Config, ModelConfig, RemoteProvider } from "../config/config.ts";
import type { OfferedModel } from "../config/imports.ts";
import { ConfigError } from "../config/config-error.ts";
import { unknownProvider } from "../config/providers.ts";
import { systemClock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import { listModels } from "../gateway/model-imports.ts";
import { adviceOn, testProvider } from "../gateway/provider-test.ts";
import { type Command, CONFIG_FLAG, EXIT, UsageError } from "./command.ts";
import { loadWithStored } from "./with-store.ts";

export const providersTest: Command = {
  name: "providers test",
  summary: "ask a provider for one token and for its models, and describe the problem when it does not answer",
  positionals: ["NAME"],
  flags: {
    model: { value: "ID", help: "a model of this provider (default: its first one that makes completions)" },
    ...CONFIG_FLAG,
  },
  async run({ positionals: [name], flags }, { env, stdout, stderr }) {
    const config = await loadWithStored({ file: flags["config"], env });
    const provider = findProvider(config, name!);
    const model = findModel(config, name!, flags["model"]);
    const what = model === undefined ? "its list of models" : model.upstreamModel;
    try {
      if (model !== undefined) {
        const { upstreamModel, durationMs, tokens } = await testProvider(config, model.id);
        const counted = tokens === undefined ? "it counted no tokens" : `${tokens.input} + ${tokens.output} tokens`;
        stdout.write(`${name} answers: ${upstreamModel} in ${durationMs} ms, ${counted}.\n`);
      }
      const list = listModels(config, provider, { clock: systemClock, limitMs: LIST_LIMIT_MS });
      // A server that answers need not have a list.
      const offered = await (model === undefined ? list : list.catch(() => undefined));
      stdout.write(offered === undefined ? "It has no list of models.\n" : describeList(offered));
      return EXIT.ok;
    } catch (reason) {
      if (reason instanceof ConfigError) throw reason;
      const failure = Failure.from(reason);
      const { message, upstreamStatus, cause } = failure;
      const status = upstreamStatus === undefined ? "" : ` (HTTP ${upstreamStatus})`;
      const detail = cause instanceof Error ? ` ${cause.message}` : "";
      stderr.write(`${name} does not answer for ${what}${status}: ${message}${detail}\n`);
      const advice = adviceOn(failure, provider.host);
      if (advice !== undefined) stderr.write(`${advice}\n`);
      return EXIT.failed;
    }
  },
};

const LIST_LIMIT_MS = 10_000;

/** Models that are named. */
const MAX_NAMED = 20;

function describeList(offered: readonly OfferedModel[]): string {
  const names = offered.slice(0, MAX_NAMED).map(({ name }) => name);
  const rest = offered.length > names.length ? `, and ${offered.length - names.length} more` : "";
  return `It lists ${offered.length} models: ${names.join(", ")}${rest}.\n`;
}

/** Throws UsageError. */
function findProvider({ providers }: Config, name: string): RemoteProvider {
  const provider = providers.find((one) => one.name === name);
  if (provider === undefined) throw new UsageError(`${name}: ${unknownProvider(name, providers)}`);
  if (provider.simulated) {
    const variable = `${name.toUpperCase()}_API_KEY`;
    throw new UsageError(
      `${name} is simulated: it has no credential; set ${variable}, or its api_keys in the configuration`,
    );
  }
  return provider;
}

/** The model to ask for; undefined for a provider whose models are imported. Throws UsageError. */
function findModel({ models, imports }: Config, name: string, id: string | undefined): ModelConfig | undefined {
  const own = models.filter((model) => model.provider === name && !model.modalities.output.includes("embedding"));
  const found = id === undefined ? own[0] : own.find((model) => model.id === id);
  if (found !== undefined) return found;
  const ids = own.map((model) => model.id);
  if (id === undefined && imports.some(({ provider }) => provider === name)) return undefined;
  if (ids.length === 0) throw new UsageError(`no model of ${name} makes completions; add one to models`);
  throw new UsageError(`${name} has no model ${id}; it has: ${ids.join(", ")}`);
}
