import { type LoadOptions, readSource, withKeys } from "../config/load.ts";
import type { ConfigSource } from "../config/parse.ts";
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
    return context.serve(await readSourceFor(role, { file: flags["config"], env: context.env }), role);
  },
};

/** The source of a role's configuration. A front decrypts nothing, so it needs no key. */
export async function readSourceFor(role: Role, options: LoadOptions): Promise<ConfigSource> {
  const source = readSource(options);
  return role.name === "front" ? { ...source, keys: "unread" } : withKeys(source);
}

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
