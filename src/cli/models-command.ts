import type { ModelConfig } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { CONFIG_FLAG, JSON_FLAG, writeJson, type Command } from "./command.ts";
import { EXIT } from "./exit-code.ts";
import { formatTable } from "./table.ts";

const HEADING = ["MODEL", "PROVIDER", "UPSTREAM MODEL", "CONTEXT", "MAX OUTPUT", "IN", "OUT", "USD/M IN", "USD/M OUT"];

export const models: Command = {
  name: "models",
  summary: "list the models, where they are served and what they cost",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  async run({ flags, switches }, { env, stdout }) {
    const config = loadConfig({ file: flags["config"], env });
    if (switches.has("json")) writeJson(stdout, config.models);
    else {
      const simulated = new Set(config.providers.filter((provider) => provider.simulated).map(({ name }) => name));
      const rows = config.models.map((model) => toRow(model, simulated.has(model.provider) ? " (simulated)" : ""));
      stdout.write(`${formatTable([HEADING, ...rows])}\n`);
    }
    return EXIT.ok;
  },
};

function toRow(model: ModelConfig, providerNote: string): string[] {
  return [
    model.id,
    model.provider + providerNote,
    model.upstreamModel,
    String(model.contextWindow),
    String(model.maxOutputTokens),
    model.modalities.input.join("+"),
    model.modalities.output.join("+"),
    model.price === undefined ? "-" : toUsd(model.price.input),
    model.price === undefined ? "-" : toUsd(model.price.output),
  ];
}

function toUsd(microUsd: number): string {
  return String(microUsd / 1_000_000);
}
