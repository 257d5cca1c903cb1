import { loadConfig } from "../config/load.ts";
import { openStore } from "../store/store.ts";
import { CONFIG_FLAG, JSON_FLAG, writeJson, type Command } from "./command.ts";
import { EXIT } from "./exit-code.ts";

export const migrate: Command = {
  name: "migrate",
  summary: "bring the database up to this version, as serve does when it starts",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  async run({ flags, switches }, { env, stdout }) {
    const store = await openStore(loadConfig({ file: flags["config"], env }));
    await store.close();
    const { before, after } = store.versions;
    if (switches.has("json")) writeJson(stdout, { version_before: before, version: after });
    else if (before === after) stdout.write(`The database has version ${after} already.\n`);
    else stdout.write(`Migrated the database from version ${before} to ${after}.\n`);
    return EXIT.ok;
  },
};
