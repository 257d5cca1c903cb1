import { execFile } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A folder of the temporary folder for what is built once on a machine. */
export function buildFolder(name: string): string {
  const folder = join(tmpdir(), `parley-go-${name.replaceAll(/[^\w.@-]/g, "_")}`);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Path of the Go program `MODULE@VERSION`, which is built if it is not there. */
export async function goProgram(module: string): Promise<string> {
  const folder = buildFolder(module);
  const program = join(folder, /([^/]+)@/.exec(module)?.[1] ?? "");
  if (existsSync(program)) return program;
  try {
    await run("go", ["install", module], { env: { ...process.env, GOBIN: folder } });
  } catch (cause) {
    throw new Error(`this test needs Go 1.26 and its module proxy: go install ${module} has failed`, { cause });
  }
  return program;
}
