import type { Config, ModelConfig } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { unknownProvider } from "../config/resolve.ts";
import { Failure } from "../core/failure.ts";
import { adviceOn, testProvider } from "../gateway/provider-test.ts";
import { type Command, CONFIG_FLAG, EXIT, UsageError } from "./command.ts";

export const providersTest: Command = {
  name: "providers test",
  summary: "ask a provider for one token, and say what is wrong when it does not answer",
  positionals: ["NAME"],
  flags: {
    model: { value: "ID", help: "a model of this provider (default: its first one that makes completions)" },
    ...CONFIG_FLAG,
  },
  async run({ positionals: [name], flags }, { env, stdout, stderr }) {
    const config = loadConfig({ file: flags["config"], env });
    const model = findModel(config, name!, flags["model"]);
    try {
      const { upstreamModel, durationMs, tokens } = await testProvider(config, model.id);
      const counted = tokens === undefined ? "it counted no tokens" : `${tokens.input} + ${tokens.output} tokens`;
      stdout.write(`${name} answers: ${upstreamModel} in ${durationMs} ms, ${counted}.\n`);
      return EXIT.ok;
    } catch (reason) {
      const failure = Failure.from(reason);
      const { message, upstreamStatus, cause } = failure;
      const status = upstreamStatus === undefined ? "" : ` (HTTP ${upstreamStatus})`;
      const detail = cause instanceof Error ? ` ${cause.message}` : "";
      stderr.write(`${name} does not answer for ${model.upstreamModel}${status}: ${message}${detail}\n`);
      const provider = config.providers.find((one) => one.name === name);
      const advice = adviceOn(failure, provider?.simulated === false ? provider.host : undefined);
      if (advice !== undefined) stderr.write(`${advice}\n`);
      return EXIT.failed;
    }
  },
};

/** The model to ask for. Throws UsageError. */
function findModel({ providers, models }: Config, name: string, id: string | undefined): ModelConfig {
  const provider = providers.find((one) => one.name === name);
  if (provider === undefined) throw new UsageError(`${name}: ${unknownProvider(name, providers)}`);
  if (provider.simulated) throw new UsageError(`${name} is simulated: it has no credential`);
  const own = models.filter((model) => model.provider === name && !model.modalities.output.includes("embedding"));
  const found = id === undefined ? own[0] : own.find((model) => model.id === id);
  if (found !== undefined) return found;
  const ids = own.map((model) => model.id);
  if (ids.length === 0) throw new UsageError(`no model of ${name} makes completions; add one to models`);
  throw new UsageError(`${name} has no model ${id}; it has: ${ids.join(", ")}`);
}
