import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** A TypeScript program of the tests, as a process. */
export interface TestProcess {
  readonly child: ChildProcess;
  /** Resolves with the next line on stdout. Rejects if the process exits before. */
  line(): Promise<string>;
  /** Writes a line to stdin. */
  tell(text: string): void;
  /** Exit code. */
  readonly ended: Promise<number | null>;
}

/** Starts a program with an environment of nothing but Node's compile cache; stderr is inherited. */
export function startProcess(program: string, ...args: readonly string[]): TestProcess {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] },
  });
  const ended = once(child, "exit").then(([code]) => code as number | null);
  const lines = readLines(child);
  return {
    child,
    ended,
    tell: (text) => void child.stdin.write(`${text}\n`),
    async line() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${program} exited without output`);
      return value;
    },
  };
}

async function* readLines({ stdout }: ChildProcess): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const text of stdout!.setEncoding("utf8")) {
    const lines = (rest + String(text)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}
