import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { askChild, PEER_CORE, startOwn, stopChild } from "../../../bench/children.ts";
import { launch } from "../../../bench/contestants/parley.ts";
import { modelOf, type StreamShape } from "../../../bench/upstream/answers.ts";
import { ensureProgram } from "../../../scripts/program.mjs";
import { createKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { openStore } from "../../../src/store/store.ts";
import { coreTimeOf, slowdown } from "./core-time.ts";
import type { Outcome, Phase, Target } from "./generator.ts";

/** The built product, its upstream and its callers, each in a process of its own: the product on one core, they on another. */
export interface Crowd {
  readonly port: number;
  readonly operationsUrl: string;
  readonly pid: number;
  /** API keys of the product. */
  readonly keys: readonly string[];
  /** What the product has written into its log. */
  readonly log: () => string;
  /** Lets callers send requests for a while, and says what became of them. */
  run(phase: Phase): Promise<Run>;
  stop(): Promise<void>;
}

/** What became of a phase's requests, and how much slower than on cores of their own the processes were. */
export interface Run {
  readonly outcomes: Record<string, Outcome>;
  /** Of the product. */
  readonly slowdown: number;
  /** Of the slower of the product and its callers: what they see. */
  readonly seenSlowdown: number;
}

export interface CrowdOptions {
  /** What each answer of the upstream is like. */
  readonly answer: StreamShape;
  readonly keys: number;
  /** More of the configuration. */
  readonly config?: object;
}

/**
 * Without any compiler: callers and upstream share one core, and could not do what ten times as much as the product would
 * mean otherwise. It takes some five times as long for everything, refusals too.
 */
const SLOW = ["--no-opt", "--no-sparkplug"];

/** Starts all of it. */
export async function startCrowd({ answer, keys: count, config = {} }: CrowdOptions): Promise<Crowd> {
  await ensureProgram(process.execPath);
  const home = mkdtempSync(join(tmpdir(), "parley-crowd-"));
  const dataDir = join(home, "data");
  mkdirSync(dataDir);
  const keys = await makeKeys(dataDir, count);
  const model = modelOf(answer);
  const [upstream, { port: upstreamPort }] = await startOwn<{ port: number }>({
    core: PEER_CORE,
    file: "upstream/server.ts",
  });
  const configFile = join(home, "parley.yaml");
  writeFileSync(configFile, JSON.stringify({ ...configOf({ dataDir, model, upstreamPort }), ...config }));
  const log = join(home, "log");
  const { child, httpPort, operationsPort } = await launch(
    { configFile, dataDir },
    { logFile: log, nodeOptions: SLOW },
  );
  const target: Target = {
    port: httpPort,
    path: "/v1/chat/completions",
    body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "How do bridges stand?" }] }),
    marks: answer.chunks,
  };
  const [generator] = await startOwn<object>({
    core: PEER_CORE,
    file: "../test/faults/overload/generator.ts",
    args: [JSON.stringify(target)],
  });
  return {
    port: httpPort,
    operationsUrl: `http://127.0.0.1:${operationsPort}`,
    pid: child.pid!,
    keys,
    log: () => readFileSync(log, "utf8"),
    async run(phase) {
      const asked = askChild<Record<string, Outcome>>(generator, phase);
      await setTimeout(phase.settleSeconds * 1000);
      const pids = [child.pid!, generator.pid!] as const;
      const before = pids.map(coreTimeOf);
      await setTimeout((phase.seconds - phase.settleSeconds) * 1000);
      const [own, callers] = pids.map((pid, index) => slowdown(before[index]!, coreTimeOf(pid))) as [number, number];
      return { outcomes: await asked, slowdown: own, seenSlowdown: Math.max(own, callers) };
    },
    async stop() {
      const children: readonly ChildProcess[] = [generator, child, upstream];
      await Promise.all(children.map((each) => stopChild(each)));
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function makeKeys(dataDir: string, count: number): Promise<string[]> {
  const store = await openStore({ dataDir, databaseUrl: undefined });
  try {
    const keys: string[] = [];
    for (let index = 0; index < count; index++) {
      keys.push((await createKey({ store: store.keys, clock: systemClock }, { name: `caller ${index}` })).secret);
    }
    return keys;
  } finally {
    await store.close();
  }
}

function configOf({
  dataDir,
  model,
  upstreamPort,
}: {
  readonly dataDir: string;
  readonly model: string;
  readonly upstreamPort: number;
}): object {
  const listen = "127.0.0.1:0";
  const base_url = `http://127.0.0.1:${upstreamPort}`;
  return {
    http: { listen },
    grpc: { listen },
    operations: { listen },
    data_dir: dataDir,
    // Counted as ever, and never reached: what refuses here is the gateway's load alone.
    limits: { requests_per_minute: 1e9, tokens_per_minute: 1e9, concurrent_requests: 1e6 },
    providers: { alpha: { dialect: "anthropic", base_url, allow_private: true, api_keys: ["crowd"] } },
    models: { [model]: { provider: "alpha", upstream_model: model, price: { input: 5, output: 25 } } },
  };
}
