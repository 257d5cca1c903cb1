import { join } from "node:path";
import { runCli } from "../../src/cli/cli.ts";
import type { CliContext } from "../../src/cli/command.ts";

function wordsOf(command: string | readonly string[]): readonly string[] {
  return typeof command === "string" ? command.split(" ").filter((word) => word !== "") : command;
}

/** Runs a command, and returns its exit code and output. A text is split at spaces. The environment is empty by default. */
export async function captureCli(command: string | readonly string[], context: Partial<CliContext> = {}) {
  let [stdout, stderr] = ["", ""];
  const code = await runCli(wordsOf(command), {
    env: {},
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    serve: () => Promise.resolve(0),
    ...context,
  });
  return { code, stdout, stderr };
}

/** Runs a command on the database of a product. Returns its output; throws with its error. */
export async function runBeside(
  { home }: { readonly home: string },
  command: string | readonly string[],
  input = "",
): Promise<string> {
  const { code, stdout, stderr } = await captureCli([...wordsOf(command), "--config", join(home, "parley.yaml")], {
    env: { PARLEY_DATA_DIR: join(home, "data") },
    readInput: async () => input,
  });
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/** As `runBeside` with `--json`. Returns what the command prints. */
export async function runJson<T>(command: string, product: { readonly home: string }): Promise<T> {
  return JSON.parse(await runBeside(product, `${command.trim()} --json`)) as T;
}

/** Creates a key with these flags on the database of a product. */
export function createKey(product: { readonly home: string }, flags = "") {
  return runJson<{ readonly id: string; readonly key: string }>(`keys create --name a ${flags}`, product);
}
