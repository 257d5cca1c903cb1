import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";

/** Core of the server under test; no other process of the benchmark runs on it. */
export const SERVER_CORE = 0;
/** Core of the mock upstream and the load generator. */
export const PEER_CORE = 1;

const taskset = findProgram("taskset");

/** Whether processes are pinned to cores. */
export const isPinned = taskset !== undefined && availableParallelism() > 1;

const setpriv = findProgram("setpriv");
/** Makes the kernel kill a child when this process gets SIGKILL, which runs no handler. */
const MORTAL = setpriv === undefined ? [] : [setpriv, "--pdeathsig", "KILL"];

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Time between SIGTERM and SIGKILL of a child. */
const STOP_MS = 10_000;

/** With four cores: cores of a second worker and of the load generator. */
export const SECOND_SERVER_CORE = 2;
export const SECOND_PEER_CORE = 3;

/** Whether two workers, the upstream and the load generator have a core each. */
export const hasCoresForTwo = isPinned && availableParallelism() >= 4;

/** A program with its core. */
export interface Command {
  /** One core, or several as `taskset` lists them. */
  readonly core: number | string;
  readonly program: string;
  readonly args: readonly string[];
  readonly stdio: StdioOptions;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a program on a core. The child's process ID is that of the program itself, to read its CPU time. */
export function startPinned({ core, program, args, stdio, env: more = {} }: Command): ChildProcess {
  const [command, ...rest] = [...MORTAL, ...(isPinned ? [taskset!, "-c", String(core)] : []), program, ...args];
  // PARLEY_* variables of this machine must not configure the instance under test.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PARLEY_"));
  const env = { ...Object.fromEntries(inherited), ...more };
  const child = spawn(command!, rest, { stdio, env });
  endWithThis(child);
  return child;
}

/** Kills a child when this process exits. */
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

/** Starts one of the benchmark's own programs; its first message reports that it is ready. Throws when it exits before. */
export async function startOwn<T>({ core, file, args = [], nodeOptions = [] }: OwnProgram): Promise<[ChildProcess, T]> {
  const path = join(import.meta.dirname, file);
  const stdio: StdioOptions = ["ignore", "inherit", "inherit", "ipc"];
  const child = startPinned({ core, program: process.execPath, args: [...nodeOptions, path, ...args], stdio });
  const ended = once(child, "exit").then(() => {
    throw new Error(`${file} ended before it was ready`);
  });
  const [message] = (await Promise.race([once(child, "message"), ended])) as [T];
  // A later exit is expected.
  ended.catch(() => undefined);
  return [child, message];
}

/** Sends a child a message and waits for its next one. Throws when it exits instead. */
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

/** Ends a child with SIGTERM, and with SIGKILL after `STOP_MS`. */
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
