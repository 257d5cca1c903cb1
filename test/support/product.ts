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

/** Built once, it starts in a third of the time that the sources take. */
const BUILT = await builtProgram();
export const MAIN = BUILT.program;
export const FREE_PORTS = {
  http: { listen: "127.0.0.1:0" },
  grpc: { listen: "127.0.0.1:0" },
  operations: { listen: "127.0.0.1:0" },
};
/** How long the greeting and an exit are waited for; a loaded machine takes its time. */
const PATIENCE_MS = 20_000;

export interface ProductOptions {
  /** What `parley.yaml` says, beside free ports and the data directory. */
  readonly config?: object;
  /** A directory that outlives the process: made by `makeHome`. Default: one of its own, removed by `stop`. */
  readonly home?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Flags of `serve`. */
  readonly flags?: readonly string[];
  /** Path of the program. Default: the built one. */
  readonly program?: string;
}

/** How a process ended: by itself with a code, or by a signal. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The product, running in a process of its own and ready. */
export interface Product {
  readonly pid: number;
  /** Where `/v1` is: `http://127.0.0.1:…`. */
  readonly url: string;
  /** NaN where the role has no such entrance. */
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsUrl: string;
  readonly home: string;
  /** The secret of a key that was made because there was none; empty on an old data directory. */
  readonly firstKey: string;
  /** All that was printed so far. */
  readonly output: Output;
  readonly ending: Promise<Ending>;
  signal(name: NodeJS.Signals): void;
  /** Resident memory now, in bytes. */
  rssBytes(): number;
  /** Replaces `parley.yaml`; without effect until SIGHUP or a restart. */
  writeConfig(config: object | string): void;
  /** Ends it, however it is, and removes a directory of its own. */
  stop(): Promise<void>;
}

export interface Output {
  stdout: string;
  stderr: string;
}

/** A directory for one `parley.yaml` and its data. The caller removes it. */
export function makeHome(): string {
  return mkdtempSync(join(tmpdir(), "parley-product-"));
}

/** Starts the product and waits for its greeting. Rejects with what it printed when it ends without one. */
export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const home = options.home ?? makeHome();
  const file = join(home, "parley.yaml");
  // A JSON document is a YAML document.
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
    if (!options.flags?.includes("front")) firstKey = await makeFirstKey(file, environmentOf({ ...options, home }));
  } catch (error) {
    await stop();
    throw error;
  }
  const port = (pattern: RegExp): number => Number(pattern.exec(output.stdout)?.[1]);
  const httpPort = port(/HTTP +http:\/\/127\.0\.0\.1:(\d+)/);
  const operationsPort = port(/health +http:\/\/127\.0\.0\.1:(\d+)/);
  return {
    pid: child.pid!,
    url: `http://127.0.0.1:${httpPort}`,
    httpPort,
    grpcPort: port(/gRPC +127\.0\.0\.1:(\d+)/),
    operationsUrl: `http://127.0.0.1:${operationsPort}`,
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

/** A command of the product on its way. */
export interface RunningCommand {
  readonly child: ChildProcess;
  readonly output: Output;
  readonly ending: Promise<Ending>;
}

/** Runs one command line of the product, in an environment with nothing of the developer's own. */
export function runProduct(
  argv: readonly string[],
  { home, env = {}, program = MAIN }: { readonly home: string } & Pick<ProductOptions, "env" | "program">,
): RunningCommand {
  const child = spawn(process.execPath, [program, ...argv], {
    cwd: home,
    env: environmentOf({ home, env }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output: Output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (output.stderr += text));
  // "close" and not "exit": by then all that was printed has been read.
  const ending = once(child, "close").then(([code, signal]): Ending => ({ code, signal }));
  return { child, output, ending };
}

function environmentOf({ home, env }: Pick<ProductOptions, "env"> & { readonly home: string }) {
  return { PATH: process.env["PATH"], PARLEY_DATA_DIR: join(home, "data"), ...BUILT.env, ...env };
}

/** Makes the key that the program makes for a person at a terminal. */
async function makeFirstKey(file: string, env: NodeJS.ProcessEnv): Promise<string> {
  const store = await openStore(loadConfig({ file, env }));
  try {
    return (await createFirstKey({ store: store.keys, clock: systemClock }))?.secret ?? "";
  } finally {
    await store.close();
  }
}

/** Waits until the greeting is complete. */
async function greeted({ child, output, ending }: RunningCommand): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const give = (what: string): void => reject(new Error(`${what}\n${output.stdout}\n${output.stderr}`));
    const timer = setTimeout(give, PATIENCE_MS, "The product did not greet in time.");
    void ending.then(() => give("The product ended without a greeting."));
    child.stdout!.on("data", () => {
      if (!output.stdout.endsWith("\n\n")) return;
      clearTimeout(timer);
      resolve();
    });
    void ending.finally(() => clearTimeout(timer));
  });
}
