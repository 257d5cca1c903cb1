import { loadConfig } from "../config/load.ts";
import { listWarnings } from "../config/warnings.ts";
import { redactConfig } from "../config/redact.ts";
import { JSON_FLAG, writeJson, type Command } from "./command.ts";
import { EXIT } from "./exit-code.ts";

export const configCheck: Command = {
  name: "config check",
  summary: "check a configuration file with the present environment, without starting anything",
  positionals: ["FILE"],
  flags: { json: { help: `${JSON_FLAG.json.help}: the complete configuration, secrets hidden` } },
  async run({ positionals: [file], switches }, { env, stdout, stderr }) {
    const config = loadConfig({ file, env });
    if (switches.has("json")) writeJson(stdout, redactConfig(config));
    else {
      const remote = config.providers.filter(({ simulated }) => !simulated).length;
      const simulated = config.providers.length - remote;
      stdout.write(
        `${file} is valid. Models: ${config.models.length}, providers: ${remote}, simulated: ${simulated}.\n`,
      );
    }
    for (const { setting, text } of listWarnings(config)) stderr.write(`warning: ${setting}: ${text}\n`);
    return EXIT.ok;
  },
};
