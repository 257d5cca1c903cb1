import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFirstKey } from "../../src/access/keys.ts";
import { loadConfig } from "../../src/config/load.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { builtProgram } from "./built-program.ts";

/** The built program starts in a third of the time of the sources. */
const BUILT = await builtProgram();
export const MAIN = BUILT.program;
export const FREE_PORTS = {
  http: { listen: "127.0.0.1:0" },
  grpc: { listen: "127.0.0.1:0" },
  operations: { listen: "127.0.0.1:0" },
};
/** Timeout for the start and for the exit, generous for busy machines. */
const TIMEOUT_MS = 45_000;

export interface ProductOptions {
  /** Configuration in addition to free ports and the data directory. */
  readonly config?: object;
  /** A directory from `makeHome` that outlives the process. Default: a temporary one, removed by `stop`. */
  readonly home?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Flags of `serve`. */
  readonly flags?: readonly string[];
  /** Whether to create a first key, which needs the database. Default: true, except for a front. */
  readonly withFirstKey?: boolean;
  /** Path of a program that Node runs, or of the single executable. Default: the built program. */
  readonly program?: string;
}

/** Exit code or signal of a process. */
interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The product as a running process. */
export interface Product {
  readonly pid: number;
  /** Origin of the API: `http://127.0.0.1:…`, with TLS `https:`. */
  readonly url: string;
  /** NaN if the role has no such entrance. */
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsUrl: string;
  readonly home: string;
  /** Secret of the first key, created at the first start; empty on an existing data directory. */
  readonly firstKey: string;
  /** All output so far. */
  readonly output: Output;
  readonly ending: Promise<Ending>;
  signal(name: NodeJS.Signals): void;
  /** Current resident memory, in bytes. */
  rssBytes(): number;
  /** Replaces `parley.yaml`; takes effect at SIGHUP or a restart. */
  writeConfig(config: object | string): void;
  /** Ends it in any state, and removes its temporary directory. */
  stop(): Promise<void>;
}

export interface Output {
  stdout: string;
  stderr: string;
}

/** Creates a directory for one `parley.yaml` and its data. The caller removes it. */
export function makeHome(): string {
  return mkdtempSync(join(tmpdir(), "parley-product-"));
}

/** Starts the product and waits for its start-up message. Rejects with its output if it exits before. */
export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const home = options.home ?? makeHome();
  const file = join(home, "parley.yaml");
  // YAML accepts JSON.
  const writeConfig = (config: object | string): void =>
    writeFileSync(file, typeof config === "string" ? config : JSON.stringify({ ...FREE_PORTS, ...config }, null, 2), {
      mode: 0o600,
    });
  writeConfig(options.config ?? {});
  const running = runProduct(["serve", ...(options.flags ?? [])], { ...options, home });
  const { output, child, ending } = running;
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ending;
    if (options.home === undefined) rmSync(home, { recursive: true, force: true });
  };
  let firstKey = "";
  try {
    await greeted(running);
    if (options.withFirstKey ?? !options.flags?.includes("front"))
      firstKey = await makeFirstKey(file, environmentOf({ ...options, home }));
  } catch (error) {
    await stop();
    throw error;
  }
  const told = (pattern: RegExp): string => pattern.exec(output.stdout)?.[1] ?? "";
  const url = told(/HTTP +(https?:\/\/127\.0\.0\.1:\d+)/);
  return {
    pid: child.pid!,
    url,
    httpPort: url === "" ? NaN : Number(new URL(url).port),
    grpcPort: Number(told(/gRPC +127\.0\.0\.1:(\d+)/) || NaN),
    operationsUrl: told(/health +(https?:\/\/127\.0\.0\.1:\d+)/),
    home,
    firstKey,
    output,
    ending,
    signal: (name) => void child.kill(name),
    rssBytes: () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) * 1024,
    writeConfig,
    stop,
  };
}

/** A running command of the product. */
export interface RunningCommand {
  readonly child: ChildProcess;
  readonly output: Output;
  readonly ending: Promise<Ending>;
}

/** Runs one command line of the product, without the developer's environment variables. */
export function runProduct(
  argv: readonly string[],
  { home, env = {}, program = MAIN }: { readonly home: string } & Pick<ProductOptions, "env" | "program">,
): RunningCommand {
  const isExecutable = !/\.[cm]?[jt]s$/.test(program);
  const child = spawn(isExecutable ? program : process.execPath, isExecutable ? argv : [program, ...argv], {
    cwd: home,
    env: environmentOf({ home, env }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output: Output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (output.stderr += text));
  // "close" instead of "exit": all output has been read.
  const ending = once(child, "close").then(([code, signal]): Ending => ({ code, signal }));
  return { child, output, ending };
}

function environmentOf({ home, env }: Pick<ProductOptions, "env"> & { readonly home: string }) {
  return { PATH: process.env["PATH"], PARLEY_DATA_DIR: join(home, "data"), ...BUILT.env, ...env };
}

/** Creates the key that the program creates at a terminal. */
async function makeFirstKey(file: string, env: NodeJS.ProcessEnv): Promise<string> {
  const store = await openStore(loadConfig({ file, env }));
  try {
    return (await createFirstKey({ store: store.keys, clock: systemClock }))?.secret ?? "";
  } finally {
    await store.close();
  }
}

/** Waits for the complete start-up message. */
async function greeted({ child, output, ending }: RunningCommand): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const give = (what: string): void => reject(new Error(`${what}\n${output.stdout}\n${output.stderr}`));
    const timer = setTimeout(give, TIMEOUT_MS, "The product did not greet in time.");
    void ending.then(() => give("The product ended without a greeting."));
    child.stdout!.on("data", () => {
      if (!output.stdout.endsWith("\n\n")) return;
      clearTimeout(timer);
      resolve();
    });
    void ending.finally(() => clearTimeout(timer));
  });
}
