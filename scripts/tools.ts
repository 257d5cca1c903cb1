import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Runs a tool of node_modules in the foreground, with these additional variables. It stays in this process group, to
 * which `run.mjs` sends signals.
 *
 * @throws {Error} when it exits with another code than 0, after its own message
 */
export async function runTool(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<undefined> {
  // On Windows the tools are shell scripts.
  const shell = process.platform === "win32";
  const child = spawn(command, args, { stdio: "inherit", shell, env: { ...process.env, ...env } });
  await once(child, "exit");
  if (child.exitCode !== 0) throw new Error(`${command} ended with ${child.exitCode ?? child.signalCode}`);
}
