import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { program, programEnvironment, programFlags } from "../../scripts/program.mjs";
import { isPinned, SERVER_CORE, startPinned, stopChild } from "../children.ts";
import type { Load } from "../loads.ts";
import type { RunningServer, Setting } from "./server.ts";

const ROOT = join(import.meta.dirname, "../..");
/** What `npm start` runs; `bench/run.ts` has built it. */
const PROGRAM = join(program.folder, "main.cjs");
const SOURCES = join(ROOT, "src/main.ts");

const START_MS = 20_000;

/** What Parley is called in tables. */
export const PARLEY = "Parley";
/** The last words of a stream of Parley's. */
export const PARLEY_LAST_WORDS = "data: [DONE]";

/** Starts Parley as it runs in production, on an empty data directory, with the mock upstream as its only provider. */
export async function startParley(setting: Setting): Promise<RunningServer> {
  const home = makeHome(setting);
  const running = await launch(home, setting);
  const { child, httpPort, grpcPort, key } = running;
  if (key === undefined) {
    await stopChild(child);
    throw new Error("Parley has shown no key on an empty data directory.");
  }
  const port = setting.load.transport === "http" ? httpPort : grpcPort;
  return { name: PARLEY, process: child, port, key, lastWords: PARLEY_LAST_WORDS };
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
  }: Pick<Setting, "nodeOptions" | "fromSources" | "serverCores"> & { readonly logFile?: string } = {},
): Promise<Launched> {
  const child = startPinned({
    core: serverCores ?? SERVER_CORE,
    program: process.execPath,
    args: [
      ...programFlags(processorsOf(serverCores)),
      ...nodeOptions,
      fromSources ? SOURCES : PROGRAM,
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
    providers: { alpha: { dialect, base_url, allow_private: true, api_keys: ["bench"] } },
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
  /** On an empty data directory only. */
  readonly key: string | undefined;
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
    if (
      http !== undefined &&
      grpc !== undefined &&
      operations !== undefined &&
      /^(curl|Keys are made)/m.test(printed)
    ) {
      // Whatever else it prints must not fill the pipe.
      stdout.resume();
      const key = /\bsk_parley_\w+/.exec(printed)?.[0];
      return { httpPort: Number(http), grpcPort: Number(grpc), operationsPort: Number(operations), key };
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
