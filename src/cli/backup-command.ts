import { resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { backUp } from "../store/backup.ts";
import { CONFIG_FLAG, type Command } from "./command.ts";
import { EXIT } from "./exit-code.ts";

export const backup: Command = {
  name: "backup",
  summary: "copy the SQLite database to a new file, also while the gateway runs",
  positionals: ["FILE"],
  flags: CONFIG_FLAG,
  async run({ flags, positionals: [file = ""] }, { env, stdout }) {
    const config = loadConfig({ file: flags["config"], env });
    const target = resolve(file);
    await backUp(config, target);
    stdout.write(`Copied the database to ${target}.\n`);
    return EXIT.ok;
  },
};
