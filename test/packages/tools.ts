import { execFileSync, spawnSync, type SpawnSyncReturns } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The project's folder. */
export const root = join(import.meta.dirname, "../..");
/** Tools that the tests install, kept for the next run. */
const cache = join(root, "node_modules/.cache/packages");

const KUBERNETES_VALIDATE = "1.37.0";
/** Kubernetes' supported versions, as far as the validator has their schemas. */
export const KUBERNETES_VERSIONS = ["1.35", "1.36", "1.37"] as const;

/** Runs a program. Throws an Error with its output for another exit code than 0. */
export function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { status, stdout, stderr, error } = tryRun(command, args, env);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

/** As `run`, with any exit code. */
export function tryRun(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): SpawnSyncReturns<string> {
  const options = { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 } as const;
  return spawnSync(command, args, { ...options, env: { ...process.env, ...env } });
}

/** Fails with what to install when the program is missing. */
export function need(program: string, remedy: string): void {
  if (spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0)
    throw new Error(`these tests need ${program}, which is not installed: ${remedy}`);
}

/** The validator of Kubernetes' objects, which has the schemas of the versions. */
export function kubernetesValidate(): string {
  const folder = join(cache, `kubernetes-validate-${KUBERNETES_VALIDATE}`);
  const program = join(folder, "bin/kubernetes-validate");
  if (existsSync(program)) return program;
  need("python3", "Python from 3.11 on with venv");
  execFileSync("python3", ["-m", "venv", folder], { stdio: "pipe" });
  const wanted = `kubernetes-validate==${KUBERNETES_VALIDATE}`;
  execFileSync(join(folder, "bin/pip"), ["install", "--quiet", wanted], { stdio: "pipe" });
  return program;
}
