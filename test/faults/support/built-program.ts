import { ensureProgram, programEnvironment, programFlags } from "../../../scripts/program.mjs";
import type { ProductOptions } from "../../support/product.ts";

/** The program as users run it: built, with the flags and variables of `npm start`. Builds it when the sources have changed. */
export async function builtProgram(): Promise<Required<Pick<ProductOptions, "program" | "env">>> {
  const program = await ensureProgram(process.execPath);
  return { program, env: { ...programEnvironment, NODE_OPTIONS: programFlags.join(" ") } };
}
