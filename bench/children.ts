import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";

/** The server under test has a core of its own, so that nobody's work but its own can be charged to it. */
export const SERVER_CORE = 0;
/** The mock upstream and the load generator share another one. */
export const PEER_CORE = 1;

const taskset = findProgram("taskset");

/** Whether processes are bound to cores. */
export const isPinned = taskset !== undefined && availableParallelism() > 1;

const setpriv = findProgram("setpriv");
/** Lets the kernel end a child when this process is killed, which no handler here would see. */
const MORTAL = setpriv === undefined ? [] : [setpriv, "--pdeathsig", "KILL"];

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** How long a child may take to end when asked to. */
const STOP_MS = 10_000;

/** Where there are four cores, a second worker has this one for itself, and the load generator that one. */
export const SECOND_SERVER_CORE = 2;
export const SECOND_PEER_CORE = 3;

/** Whether two workers have a core each, and their load too. */
export const hasCoresForTwo = isPinned && availableParallelism() >= 4;

/** What to start, and where. */
export interface Command {
  /** One core, or several as `taskset` lists them. */
  readonly core: number | string;
  readonly program: string;
  readonly args: readonly string[];
  readonly stdio: StdioOptions;
  /** Beside what this process has. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a program on a core. Its process is the program's own, so that its CPU time can be read by its id. */
export function startPinned({ core, program, args, stdio, env: more = {} }: Command): ChildProcess {
  const [command, ...rest] = [...MORTAL, ...(isPinned ? [taskset!, "-c", String(core)] : []), program, ...args];
  // What is configured for an instance of this machine must not reach the one under test.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PARLEY_"));
  const env = { ...Object.fromEntries(inherited), ...more };
  const child = spawn(command!, rest, { stdio, env });
  endWithThis(child);
  return child;
}

/** Sees to it that a child does not outlive this process. */
export function endWithThis(child: ChildProcess): void {
  running.add(child);
  child.once("exit", () => running.delete(child));
}

/** One of the benchmark's own programs, by its path in this folder. */
export interface OwnProgram {
  readonly core: number;
  readonly file: string;
  readonly args?: readonly string[];
  readonly nodeOptions?: readonly string[];
}

/** Starts one of the benchmark's own programs; its first message says that it is ready. Throws when it ends before. */
export async function startOwn<T>({ core, file, args = [], nodeOptions = [] }: OwnProgram): Promise<[ChildProcess, T]> {
  const path = join(import.meta.dirname, file);
  const stdio: StdioOptions = ["ignore", "inherit", "inherit", "ipc"];
  const child = startPinned({ core, program: process.execPath, args: [...nodeOptions, path, ...args], stdio });
  const ended = once(child, "exit").then(() => {
    throw new Error(`${file} ended before it was ready`);
  });
  const [message] = (await Promise.race([once(child, "message"), ended])) as [T];
  // From now on its end is expected.
  ended.catch(() => undefined);
  return [child, message];
}

/** Sends a child a message and waits for its next one. Throws when it ends instead. */
export async function askChild<T>(child: ChildProcess, question: object): Promise<T> {
  const ended = new AbortController();
  const abort = (): void => ended.abort(new Error("a process of the benchmark ended before it answered"));
  child.once("exit", abort);
  try {
    const reply = once(child, "message", { signal: ended.signal });
    child.send(question);
    return ((await reply) as [T])[0];
  } finally {
    child.off("exit", abort);
  }
}

/** Asks a child to end, and sees to it. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await ended;
  clearTimeout(timer);
}

/** The path of a program in PATH, or in the folder where distributions keep servers. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
