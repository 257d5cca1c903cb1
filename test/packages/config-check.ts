import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../../src/cli/cli.ts";

/** Runs `parley config check` for the text of a parley.yaml, with these variables. */
export async function checkConfig(text: string, env: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "parley-packages-"));
  const file = join(folder, "parley.yaml");
  writeFileSync(file, text, { mode: 0o600 });
  let [stdout, stderr] = ["", ""];
  const code = await runCli(["config", "check", file], {
    env,
    stdout: { write: (piece) => (stdout += piece) },
    stderr: { write: (piece) => (stderr += piece) },
    serve: () => Promise.resolve(0),
  });
  rmSync(folder, { recursive: true });
  return { code, stdout, stderr };
}
