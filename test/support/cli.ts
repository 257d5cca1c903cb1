import { runCli } from "../../src/cli/cli.ts";
import type { CliContext } from "../../src/cli/command.ts";

/** Runs a command, and returns its exit code and output. A text is split at spaces. The environment is empty by default. */
export async function captureCli(command: string | readonly string[], context: Partial<CliContext> = {}) {
  let [stdout, stderr] = ["", ""];
  const argv = typeof command === "string" ? command.split(" ").filter((word) => word !== "") : command;
  const code = await runCli(argv, {
    env: {},
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    serve: () => Promise.resolve(0),
    ...context,
  });
  return { code, stdout, stderr };
}
