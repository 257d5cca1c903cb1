import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { captureCli } from "../support/cli.ts";

/** Runs `parley config check` for the text of a parley.yaml, with these variables. */
export async function checkConfig(text: string, env: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), "parley-packages-"));
  const file = join(folder, "parley.yaml");
  writeFileSync(file, text, { mode: 0o600 });
  const result = await captureCli(["config", "check", file], { env });
  rmSync(folder, { recursive: true });
  return result;
}
