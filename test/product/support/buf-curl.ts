import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";

const BUF = fileURLToPath(new URL("../../../node_modules/@bufbuild/buf/bin/buf", import.meta.url));

/** What one run of `buf curl` printed, and how it ended. */
export interface BufResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `buf curl` with these arguments, in an environment with nothing of the developer's own. */
export async function bufCurl(...argv: readonly string[]): Promise<BufResult> {
  const child = spawn(process.execPath, [BUF, "curl", ...argv], {
    cwd: tmpdir(),
    env: { PATH: process.env["PATH"], HOME: tmpdir() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (stderr += text));
  const [code] = (await once(child, "close")) as [number];
  return { code, stdout, stderr };
}

/** The messages of a run's output: `buf curl` prints one JSON document after the other. */
export function messagesOf({ stdout }: BufResult): unknown[] {
  return stdout
    .split(/^(?=\{$)/m)
    .filter((text) => text.trim() !== "")
    .map((text) => JSON.parse(text) as unknown);
}
