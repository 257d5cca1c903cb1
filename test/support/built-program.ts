import { ensureProgram, programEnvironment, programFlags } from "../../scripts/program.mjs";

export interface BuiltProgram {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The built program with the environment of `npm start`, including Node flags that NODE_OPTIONS accepts. Builds it if
 * the sources have changed.
 */
export async function builtProgram(): Promise<BuiltProgram> {
  const program = await ensureProgram(process.execPath);
  const flags = programFlags().filter((flag) => process.allowedNodeEnvironmentFlags.has(flag.replace(/=.*/, "")));
  return { program, env: { ...programEnvironment, NODE_OPTIONS: flags.join(" ") } };
}
