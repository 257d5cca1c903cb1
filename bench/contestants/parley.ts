import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isPinned, SERVER_CORE, startPinned, stopChild } from "../children.ts";
import { CHAT_LAST_WORDS } from "../load/formats.ts";
import type { Load } from "../loads.ts";
import type { RunningServer, Setting } from "./server.ts";

/** This checkout. */
export const ROOT = join(import.meta.dirname, "../..");

const START_MS = 20_000;

/** Name of Parley in tables. */
export const PARLEY = "Parley";

/** Name of Parley whose answers do not wait for the ledger. */
export const PARLEY_INTERVAL = `${PARLEY}, interval`;

/** Starts Parley as it runs in production, on an empty data directory, with the mock upstream as its only provider. */
export async function startParley(setting: Setting): Promise<RunningServer> {
  const home = makeHome(setting);
  const key = createKey(home, setting.checkout);
  const { child, httpPort, grpcPort } = await launch(home, setting);
  const running = { name: PARLEY, process: child, key, lastWords: CHAT_LAST_WORDS };
  if (setting.load.transport === "http") return { ...running, port: httpPort };
  return { ...running, port: grpcPort, grpcRequest: await encodeGrpcRequest(setting) };
}

/** Parley whose answers do not wait for the ledger. */
export async function startParleyInterval(setting: Setting): Promise<RunningServer> {
  const config = { ...setting.config, ledger: { durability: "interval" } };
  return { ...(await startParley({ ...setting, config })), name: PARLEY_INTERVAL };
}

/** The load's gRPC request in the contract of the checkout, which may be another one. In base64. */
async function encodeGrpcRequest({ load, checkout = ROOT }: Setting): Promise<string> {
  const file = pathToFileURL(join(checkout, "bench/load/requests.ts")).href;
  const { toCompletionRequest } = (await import(file)) as typeof import("../load/requests.ts");
  return Buffer.from(toCompletionRequest(load)).toString("base64");
}

/** Path of the program that `npm start` runs in a checkout; `bench/run.ts` has built it. */
function programOf(checkout: string): string {
  return join(checkout, "dist/program/main.cjs");
}

/** Creates a key with the command line. */
export function createKey({ configFile }: Home, checkout = ROOT): string {
  const args = [programOf(checkout), "keys", "create", "--name", "bench", "--config", configFile];
  return execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

/** Folder of Parley's configuration and data. */
export interface Home {
  readonly configFile: string;
  readonly dataDir: string;
}

/** Creates a configuration for the load, without data. */
export function makeHome({ folder, ...setting }: Setting): Home {
  const home = mkdtempSync(join(folder, "parley-"));
  const configFile = join(home, "parley.yaml");
  const dataDir = join(home, "data");
  // A JSON document is a YAML document.
  writeFileSync(configFile, JSON.stringify(configOf({ ...setting, dataDir })));
  return { configFile, dataDir };
}

/** A running Parley. */
export interface Launched extends Greeting {
  readonly child: ChildProcess;
}

/** Starts Parley in its home. Throws when it does not become ready. */
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
    // The log goes to /dev/null unless `logFile` is set. Instruments answer over the IPC channel.
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

/** Number of processors that the launcher would detect on these cores. */
function processorsOf(cores: string | undefined): number | undefined {
  return isPinned ? (cores ?? String(SERVER_CORE)).split(",").length : undefined;
}

interface ConfigOptions extends Pick<Setting, "upstreamPort" | "moreModels" | "targets" | "workers" | "config"> {
  readonly load: Pick<Load, "model" | "dialect">;
  readonly dataDir: string;
}

/** All features on, as in production, with limits above every load. */
export function configOf({
  dataDir,
  load: { model, dialect = "anthropic" },
  moreModels = [],
  targets,
  upstreamPort,
  workers = 1,
  config = {},
}: ConfigOptions): object {
  const pool = Array.from({ length: targets?.count ?? 0 }, (_, index) => `target-${index}`);
  const listen = "127.0.0.1:0";
  const base_url = `http://127.0.0.1:${upstreamPort}`;
  return {
    http: { listen },
    grpc: { listen },
    operations: { listen },
    workers,
    data_dir: dataDir,
    // Counted, and never reached.
    limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 1e6 },
    providers: {
      alpha: {
        dialect,
        base_url,
        allow_private: true,
        api_keys: ["bench"],
        // For thousands of open streams.
        connections: { max: 100_000 },
      },
    },
    models: {
      ...Object.fromEntries(pool.map((name) => [name, modelOf(model, dialect)])),
      ...(targets !== undefined && {
        [model]: { policy: targets.policy, targets: pool.map((name) => ({ model: name })) },
      }),
      ...Object.fromEntries(
        [...(targets === undefined ? [model] : []), ...moreModels].map((name) => [name, modelOf(name, dialect)]),
      ),
    },
    ...config,
  };
}

function modelOf(upstreamModel: string, dialect: string): object {
  return {
    provider: "alpha",
    upstream_model: upstreamModel,
    context_window: 200_000,
    max_output_tokens: 8192,
    price: { input: 5, output: 25 },
    ...(dialect === "gemini" && { modalities: { input: ["text", "image"], output: ["text", "image"] } }),
  };
}

/** Text that `serve` prints when it is ready. */
interface Greeting {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly operationsPort: number;
}

/** Waits for the start-up output. Throws when the process exits, or after a time limit. */
async function readGreeting(child: ChildProcess): Promise<Greeting> {
  const silence = AbortSignal.any([AbortSignal.timeout(START_MS), endOf(child)]);
  let printed = "";
  const stdout = child.stdout!.setEncoding("utf8");
  for (;;) {
    const http = /OpenAI-compatible HTTP +http:\/\/[^:]+:(\d+)/.exec(printed)?.[1];
    const grpc = /gRPC +[^:]+:(\d+)/.exec(printed)?.[1];
    const operations = /metrics, health +http:\/\/[^:]+:(\d+)/.exec(printed)?.[1];
    if (http !== undefined && grpc !== undefined && operations !== undefined) {
      // Later output is discarded, so that the pipe does not fill.
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
