import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isPinned, SERVER_CORE, startPinned, stopChild } from "../children.ts";
import type { Load } from "../loads.ts";
import type { RunningServer, Setting } from "./server.ts";

/** This checkout. */
export const ROOT = join(import.meta.dirname, "../..");

const START_MS = 20_000;

/** What Parley is called in tables. */
export const PARLEY = "Parley";
/** The last words of a stream of Parley's. */
export const PARLEY_LAST_WORDS = "data: [DONE]";

/** Starts Parley as it runs in production, on an empty data directory, with the mock upstream as its only provider. */
export async function startParley(setting: Setting): Promise<RunningServer> {
  const home = makeHome(setting);
  const key = createKey(home, setting.checkout);
  const { child, httpPort, grpcPort } = await launch(home, setting);
  const port = setting.load.transport === "http" ? httpPort : grpcPort;
  return { name: PARLEY, process: child, port, key, lastWords: PARLEY_LAST_WORDS };
}

/** What `npm start` runs in a checkout; `bench/run.ts` has built it. */
function programOf(checkout: string): string {
  return join(checkout, "dist/program/main.cjs");
}

/** Makes a key by the command line. */
export function createKey({ configFile }: Home, checkout = ROOT): string {
  const args = [programOf(checkout), "keys", "create", "--name", "bench", "--config", configFile];
  return execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

/** Where Parley has its configuration and its data. */
export interface Home {
  readonly configFile: string;
  readonly dataDir: string;
}

/** A configuration for the load, and no data yet. */
export function makeHome({ folder, ...setting }: Setting): Home {
  const home = mkdtempSync(join(folder, "parley-"));
  const configFile = join(home, "parley.yaml");
  const dataDir = join(home, "data");
  // A JSON document is a YAML document.
  writeFileSync(configFile, JSON.stringify(configOf({ ...setting, dataDir })));
  return { configFile, dataDir };
}

/** Parley, serving. */
export interface Launched extends Greeting {
  readonly child: ChildProcess;
}

/** Starts Parley in its home. Throws when it does not come to serve. */
export async function launch(
  { configFile }: Home,
  {
    nodeOptions = [],
    fromSources = false,
    serverCores,
    logFile,
    checkout = ROOT,
  }: Pick<Setting, "nodeOptions" | "fromSources" | "serverCores" | "checkout"> & { readonly logFile?: string } = {},
): Promise<Launched> {
  const launcher = pathToFileURL(join(checkout, "scripts/program.mjs")).href;
  const { programEnvironment, programFlags } = (await import(launcher)) as typeof import("../../scripts/program.mjs");
  const child = startPinned({
    core: serverCores ?? SERVER_CORE,
    program: process.execPath,
    args: [
      ...programFlags(processorsOf(serverCores)),
      ...nodeOptions,
      fromSources ? join(checkout, "src/main.ts") : programOf(checkout),
      "serve",
      "--config",
      configFile,
    ],
    // Its log is written as ever, and nobody reads it. Instruments answer over the channel.
    env: programEnvironment,
    stdio: [
      "ignore",
      "pipe",
      logFile === undefined ? "ignore" : openSync(logFile, "a"),
      ...(nodeOptions.length > 0 ? (["ipc"] as const) : []),
    ],
  });
  try {
    return { child, ...(await readGreeting(child)) };
  } catch (error) {
    await stopChild(child);
    throw error;
  }
}

/** What the launcher would see from there. */
function processorsOf(cores: string | undefined): number | undefined {
  return isPinned ? (cores ?? String(SERVER_CORE)).split(",").length : undefined;
}

interface ConfigOptions extends Pick<Setting, "upstreamPort" | "moreModels" | "workers"> {
  readonly load: Pick<Load, "model" | "dialect">;
  readonly dataDir: string;
}

/** Everything on, as in production, and no limit that a load would reach. */
export function configOf({
  dataDir,
  load: { model, dialect = "anthropic" },
  moreModels = [],
  upstreamPort,
  workers = 1,
}: ConfigOptions): object {
  const listen = "127.0.0.1:0";
  const base_url = `http://127.0.0.1:${upstreamPort}`;
  return {
    http: { listen },
    grpc: { listen },
    operations: { listen },
    workers,
    data_dir: dataDir,
    // Counted as ever, and never reached.
    limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 1e6 },
    providers: {
      alpha: {
        dialect,
        base_url,
        allow_private: true,
        api_keys: ["bench"],
        // For thousands of open streams. Otherwise the keys that every version knows, so that versions can be compared.
        ...(moreModels.length > 0 && { connections: { max: 100_000 } }),
      },
    },
    models: Object.fromEntries(
      [model, ...moreModels].map((name) => [
        name,
        {
          provider: "alpha",
          upstream_model: name,
          context_window: 200_000,
          max_output_tokens: 8192,
          price: { input: 5, output: 25 },
          ...(dialect === "gemini" && { modalities: { input: ["text", "image"], output: ["text", "image"] } }),
        },
      ]),
    ),
  };
}

/** What `serve` prints when it is ready. */
interface Greeting {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsPort: number;
}

/** Waits for the greeting. Throws when the process ends or is silent for too long. */
async function readGreeting(child: ChildProcess): Promise<Greeting> {
  const silence = AbortSignal.any([AbortSignal.timeout(START_MS), endOf(child)]);
  let printed = "";
  const stdout = child.stdout!.setEncoding("utf8");
  for (;;) {
    const http = /OpenAI-compatible HTTP +http:\/\/[^:]+:(\d+)/.exec(printed)?.[1];
    const grpc = /gRPC +[^:]+:(\d+)/.exec(printed)?.[1];
    const operations = /metrics, health +http:\/\/[^:]+:(\d+)/.exec(printed)?.[1];
    if (http !== undefined && grpc !== undefined && operations !== undefined) {
      // Whatever else it prints must not fill the pipe.
      stdout.resume();
      return { httpPort: Number(http), grpcPort: Number(grpc), operationsPort: Number(operations) };
    }
    const [text] = (await once(stdout, "data", { signal: silence }).catch(() => {
      throw new Error(`Parley did not start; it printed ${JSON.stringify(printed)}`);
    })) as [string];
    printed += text;
  }
}

function endOf(child: ChildProcess): AbortSignal {
  const ended = new AbortController();
  child.once("exit", () => ended.abort());
  return ended.signal;
}
