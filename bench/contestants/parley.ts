import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SERVER_CORE, startPinned, stopChild } from "../children.ts";
import type { RunningServer, Setting } from "./server.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

const START_MS = 20_000;

/** Starts Parley as it runs in production, on an empty data directory, with the mock upstream as its only provider. */
export async function startParley(
  { load, upstreamPort, folder }: Setting,
  nodeOptions: readonly string[] = [],
): Promise<RunningServer> {
  const home = mkdtempSync(join(folder, "parley-"));
  const file = join(home, "parley.yaml");
  // A JSON document is a YAML document.
  writeFileSync(file, JSON.stringify(configOf({ home, model: load.model, upstreamPort })));
  const child = startPinned({
    core: SERVER_CORE,
    program: process.execPath,
    args: [...nodeOptions, MAIN, "serve", "--config", file],
    // Its log is written as ever, and nobody reads it.
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const greeting = await readGreeting(child);
    return {
      name: "Parley",
      process: child,
      port: load.transport === "http" ? greeting.httpPort : greeting.grpcPort,
      key: greeting.key,
      lastWords: "data: [DONE]",
    };
  } catch (error) {
    await stopChild(child);
    throw error;
  }
}

function configOf({ home, model, upstreamPort }: { home: string; model: string; upstreamPort: number }): object {
  const listen = "127.0.0.1:0";
  const base_url = `http://127.0.0.1:${upstreamPort}`;
  return {
    http: { listen },
    grpc: { listen },
    operations: { listen },
    data_dir: join(home, "data"),
    // Counted as ever, and never reached.
    limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 1e6 },
    providers: { alpha: { dialect: "anthropic", base_url, allow_private: true, api_keys: ["bench"] } },
    models: {
      [model]: {
        provider: "alpha",
        upstream_model: model,
        context_window: 200_000,
        max_output_tokens: 8192,
        price: { input: 5, output: 25 },
      },
    },
  };
}

interface Greeting {
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly key: string;
}

/** Waits for what `serve` prints on a fresh data directory. Throws when the process ends or is silent for too long. */
async function readGreeting(child: ReturnType<typeof startPinned>): Promise<Greeting> {
  const silence = AbortSignal.any([AbortSignal.timeout(START_MS), endOf(child)]);
  let printed = "";
  const stdout = child.stdout!.setEncoding("utf8");
  for (;;) {
    const http = /OpenAI-compatible HTTP +http:\/\/[^:]+:(\d+)/.exec(printed)?.[1];
    const grpc = /gRPC +[^:]+:(\d+)/.exec(printed)?.[1];
    const key = /\bsk_parley_\w+/.exec(printed)?.[0];
    if (http !== undefined && grpc !== undefined && key !== undefined && printed.includes("curl")) {
      // Whatever else it prints must not fill the pipe.
      stdout.resume();
      return { httpPort: Number(http), grpcPort: Number(grpc), key };
    }
    const [text] = (await once(stdout, "data", { signal: silence }).catch(() => {
      throw new Error(`Parley did not start; it printed ${JSON.stringify(printed)}`);
    })) as [string];
    printed += text;
  }
}

function endOf(child: ReturnType<typeof startPinned>): AbortSignal {
  const ended = new AbortController();
  child.once("exit", () => ended.abort());
  return ended.signal;
}
