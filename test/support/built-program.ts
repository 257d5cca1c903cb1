import { ensureProgram, programEnvironment, programFlags } from "../../scripts/program.mjs";

export interface BuiltProgram {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The program as users run it: built, with the variables of `npm start`, and those of its flags that variables can say.
 * Builds it when the sources have changed.
 */
export async function builtProgram(): Promise<BuiltProgram> {
  const program = await ensureProgram(process.execPath);
  const flags = programFlags().filter((flag) => process.allowedNodeEnvironmentFlags.has(flag.replace(/=.*/, "")));
  return { program, env: { ...programEnvironment, NODE_OPTIONS: flags.join(" ") } };
}
