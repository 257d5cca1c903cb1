import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { askChild, PEER_CORE, startOwn, stopChild } from "../../../bench/children.ts";
import { configOf, launch } from "../../../bench/contestants/parley.ts";
import { modelOf, type StreamShape } from "../../../bench/upstream/answers.ts";
import { ensureProgram } from "../../../scripts/program.mjs";
import { createKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { openStore } from "../../../src/store/store.ts";
import { coreTimeOf, slowdown } from "./core-time.ts";
import type { Outcome, Phase, Target } from "./generator.ts";

/** The built product, its upstream and its callers, each as a process. */
export interface Processes {
  readonly port: number;
  readonly operationsUrl: string;
  readonly pid: number;
  /** API keys of the product. */
  readonly keys: readonly string[];
  /** Returns the product's log. */
  readonly log: () => string;
  /** Runs a phase of requests, and returns the outcomes. */
  run(phase: Phase): Promise<Run>;
  stop(): Promise<void>;
}

/** Outcomes of a phase's requests. */
interface Run {
  readonly outcomes: Record<string, Outcome>;
  /** Slowdown of the product's event loop against a core of its own. */
  readonly slowdown: number;
}

export interface ProcessesOptions {
  /** Shape of each upstream answer. */
  readonly answer: StreamShape;
  readonly keys: number;
  /** Additional configuration. */
  readonly config?: object;
}

/**
 * The product may use every core, because on a single one V8's own threads would compete with the event loop. Callers
 * and upstream share one core.
 */
const ALL_CORES = `0-${availableParallelism() - 1}`;

/** Starts all processes. */
export async function startProcesses({ answer, keys: count, config = {} }: ProcessesOptions): Promise<Processes> {
  await ensureProgram(process.execPath);
  const home = mkdtempSync(join(tmpdir(), "parley-overload-"));
  const dataDir = join(home, "data");
  mkdirSync(dataDir);
  const keys = await makeKeys(dataDir, count);
  const model = modelOf(answer);
  const [upstream, { port: upstreamPort }] = await startOwn<{ port: number }>({
    core: PEER_CORE,
    file: "upstream/server.ts",
  });
  const configFile = join(home, "parley.yaml");
  writeFileSync(configFile, JSON.stringify({ ...configOf({ dataDir, load: { model }, upstreamPort }), ...config }));
  const log = join(home, "log");
  const { child, httpPort, operationsPort } = await launch(
    { configFile, dataDir },
    { logFile: log, serverCores: ALL_CORES },
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
      const before = coreTimeOf(child.pid!);
      await setTimeout((phase.seconds - phase.settleSeconds) * 1000);
      const own = slowdown(before, coreTimeOf(child.pid!));
      return { outcomes: await asked, slowdown: own };
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
