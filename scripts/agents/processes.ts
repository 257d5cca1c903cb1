import { spawn } from "node:child_process";
import { once } from "node:events";

/** A program that ended, or was ended. */
export interface Finished {
  /** `0`, another exit code, a signal's name, or the time limit. */
  readonly ending: string;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limitMs: number;
}

/** Runs a program without standard input. At the time limit it is killed with all that it has started, and also when this process exits. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env, limitMs }: RunOptions,
): Promise<Finished> {
  // Its own process group, which can be killed as a whole.
  const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (output.stderr += text));
  const killGroup = (): void => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  };
  process.once("exit", killGroup);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup();
  }, limitMs);
  try {
    const [code, signal] = (await once(child, "exit").catch((error: unknown) => {
      throw new Error(`${program} cannot be started`, { cause: error });
    })) as [number | null, NodeJS.Signals | null];
    // Processes that it left behind would keep the pipes open.
    if (child.pid !== undefined) killGroup();
    if (!child.stdout.closed || !child.stderr.closed) await once(child, "close");
    return { ending: isLate ? `not ended after ${limitMs / 1000} s` : String(code ?? signal), ...output };
  } finally {
    clearTimeout(timer);
    process.removeListener("exit", killGroup);
  }
}
