import { ConfigError } from "../config/config-error.ts";
import type { Config, ModelConfig, RouteConfig } from "../config/config.ts";
import { readSource, withKeys } from "../config/load.ts";
import { BUILT_IN_PROVIDERS } from "../config/models.ts";
import { parseConfig } from "../config/parse.ts";
import { redactConfig } from "../config/settings.ts";
import { listWarnings } from "../config/warnings.ts";
import { type Command, CONFIG_FLAG, EXIT, JSON_FLAG, writeJson } from "./command.ts";
import { formatTable } from "./output.ts";
import { loadWithStored } from "./with-store.ts";

export const configCheck: Command = {
  name: "config check",
  summary: "check a configuration file with the current environment, without starting anything",
  positionals: ["FILE"],
  flags: { json: { help: `${JSON_FLAG.json.help}: the complete configuration, secrets hidden` } },
  async run({ positionals: [file], switches }, { env, stdout, stderr }) {
    const config = parseConfig(await withKeys(readSource({ file, env })));
    requireModels(config);
    if (switches.has("json")) writeJson(stdout, redactConfig(config));
    else {
      const remote = config.providers.filter(({ simulated }) => !simulated).length;
      const simulated = config.providers.length - remote;
      const names = config.routes.length === 0 ? "" : `, names with targets: ${config.routes.length}`;
      stdout.write(
        `${file} is valid. Models: ${config.models.length}${names}, providers: ${remote}, simulated: ${simulated}.\n`,
      );
      stdout.write(describeUnknown(config.models));
    }
    for (const { setting, text } of listWarnings(config)) stderr.write(`warning: ${setting}: ${text}\n`);
    return EXIT.ok;
  },
};

/**
 * Throws ConfigError for a file without models, which is probably unfinished. The server starts with it, because models can
 * be stored.
 */
function requireModels({ file, models: all, routes, imports, providers }: Config): void {
  if (all.length + routes.length + imports.length > 0) return;
  const names = providers.map(({ name }) => name).join(", ") || "any provider, because none is configured";
  const builtIn = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(Object.keys(BUILT_IN_PROVIDERS));
  throw new ConfigError(`${file} is not complete:`, [
    `models: no model is left: none uses ${names}, and the built-in ones need ${builtIn}; add one here`,
  ]);
}

/** Names the models whose facts are not known, which budgets and clients need. */
function describeUnknown(all: readonly ModelConfig[]): string {
  const listed = (text: string, isUnknown: (model: ModelConfig) => boolean): string => {
    const ids = all.filter(isUnknown).map(({ id }) => id);
    return ids.length === 0 ? "" : `${text}: ${ids.join(", ")}.\n`;
  };
  return (
    listed("Without a price, so not usable under a budget", ({ price }) => price === undefined) +
    listed("With an assumed context_window", ({ sources }) => sources.contextWindow === "assumed")
  );
}

const HEADING = ["MODEL", "PROVIDER", "UPSTREAM MODEL", "CONTEXT", "MAX OUTPUT", "IN", "OUT", "USD/M IN", "USD/M OUT"];

export const models: Command = {
  name: "models",
  summary: "list the models with their providers and prices, and the names with targets",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  async run({ flags, switches }, { env, stdout }) {
    const config = await loadWithStored({ file: flags["config"], env });
    if (switches.has("json")) writeJson(stdout, [...config.models, ...config.routes]);
    else {
      const simulated = new Set(config.providers.filter((provider) => provider.simulated).map(({ name }) => name));
      const rows = config.models.map((model) => toRow(model, simulated.has(model.provider) ? " (simulated)" : ""));
      stdout.write(`${formatTable([HEADING, ...rows])}\n`);
      if (config.routes.length > 0)
        stdout.write(`\n${formatTable([ROUTE_HEADING, ...config.routes.map(toRouteRow)])}\n`);
      for (const { provider, prefix } of config.imports)
        stdout.write(
          `\nAnd those that ${provider} lists when Parley runs, as ${prefix}NAME: parley providers test ${provider}\n`,
        );
    }
    return EXIT.ok;
  },
};

function toRow(model: ModelConfig, providerNote: string): string[] {
  const isEmbedding = model.modalities.output.includes("embedding");
  return [
    model.id,
    model.provider + providerNote,
    model.upstreamModel,
    withSource(model.contextWindow, model.sources.contextWindow),
    isEmbedding ? "-" : withSource(model.maxOutputTokens, model.sources.maxOutputTokens),
    model.modalities.input.join("+"),
    model.modalities.output.join("+"),
    model.price === undefined ? "-" : withSource(toUsd(model.price.input), model.sources.price),
    model.price === undefined || isEmbedding ? "-" : toUsd(model.price.output),
  ];
}

type Sources = ModelConfig["sources"];

/** A fact, with its source unless it is configured. */
function withSource(fact: number | string, source: Sources[keyof Sources]): string {
  return source === "configured" || source === undefined ? String(fact) : `${fact} (${source})`;
}

const ROUTE_HEADING = ["NAME", "POLICY", "TARGETS"];

function toRouteRow({ id, policy, affinity, targets }: RouteConfig): string[] {
  const names = targets.map(({ model, weight }) => (policy === "weighted" ? `${model} (${weight})` : model));
  return [id, policy + (affinity ? ", affinity" : ""), names.join(", ")];
}

function toUsd(microUsd: number): string {
  return String(microUsd / 1_000_000);
}
