import { loadConfig } from "../config/load.ts";
import { CONFIG_FLAG, type Command } from "./command.ts";

export const serve: Command = {
  name: "serve",
  summary: "run the gateway",
  positionals: [],
  flags: CONFIG_FLAG,
  run: ({ flags }, context) => context.serve(loadConfig({ file: flags["config"], env: context.env })),
};
