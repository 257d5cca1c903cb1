import { readSource } from "../config/load.ts";
import type { Role } from "../gateway/role.ts";
import { coreTarget } from "../inbound/grpc/core-target.ts";
import { CONFIG_FLAG, type Command, UsageError } from "./command.ts";

export const serve: Command = {
  name: "serve",
  summary: "run the gateway",
  positionals: [],
  flags: {
    ...CONFIG_FLAG,
    role: {
      value: "ROLE",
      help: "all (default), core: gRPC and no HTTP, or front: HTTP in front of a core in another process",
    },
    core: { value: "ADDR", help: "a front's cores: HOST:PORT, dns:///HOST:PORT, or IP:PORT,IP:PORT" },
  },
  async run({ flags }, context) {
    const role = readRole(flags["role"] ?? "all", flags["core"]);
    return context.serve(readSource({ file: flags["config"], env: context.env }), role);
  },
};

function readRole(name: string, core: string | undefined): Role {
  if (name === "front") {
    if (core === undefined) throw new UsageError("--role front needs --core: --role front --core HOST:PORT");
    try {
      coreTarget(core);
    } catch (error) {
      throw new UsageError(`--core: ${(error as Error).message}`);
    }
    return { name, core };
  }
  if (name !== "all" && name !== "core") throw new UsageError(`--role ${name}: must be all, core or front`);
  if (core !== undefined) throw new UsageError("--core is for --role front only");
  return { name };
}
