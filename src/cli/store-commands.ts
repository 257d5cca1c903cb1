import { resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { backUp } from "../store/backup.ts";
import { openStore } from "../store/store.ts";
import { type Command, CONFIG_FLAG, EXIT, JSON_FLAG, writeJson } from "./command.ts";

export const backup: Command = {
  name: "backup",
  summary: "copy the SQLite database to a new file, also while the gateway runs",
  positionals: ["FILE"],
  flags: CONFIG_FLAG,
  async run({ flags, positionals: [file = ""] }, { env, stdout }) {
    const config = loadConfig({ file: flags["config"], env, unused: ["providers"] });
    const target = resolve(file);
    await backUp(config, target);
    stdout.write(`Copied the database to ${target}.\n`);
    return EXIT.ok;
  },
};

export const migrate: Command = {
  name: "migrate",
  summary: "migrate the database to this version, as serve does at its start",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  async run({ flags, switches }, { env, stdout }) {
    const store = await openStore(loadConfig({ file: flags["config"], env, unused: ["providers"] }));
    await store.close();
    const { before, after } = store.versions();
    if (switches.has("json")) writeJson(stdout, { version_before: before, version: after });
    else if (before === after) stdout.write(`The database already has version ${after}.\n`);
    else stdout.write(`Migrated the database from version ${before} to ${after}.\n`);
    return EXIT.ok;
  },
};
