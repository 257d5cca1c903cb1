import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Product, startProduct } from "../../support/product.ts";
import type { Findings } from "./findings.ts";
import { startSimulator } from "../../../src/simulator/server.ts";
import { answerText, localModel, startUpstream } from "../../product/support/upstream.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** What nobody but the product knows, and no answer and no line of its log may show. */
export const PLANTED = ["planted-credential-5dW1Tq8Zs", "planted-header-Jx3mP0vKe"] as const;
/** What callers say, which no line of the log may show. */
export const PLANTED_PROMPT = "planted-prompt-Hq7Rt2Yb";

/** How far the heap may have grown, in bytes, when everything is over and collected: caches fill, code is compiled. */
const HEAP_LEEWAY = 24 * 1024 * 1024;
/** The database opens some of its files when they are first needed. */
const DESCRIPTOR_LEEWAY = 4;
/** How long connections may take to be gone after their ends are closed. */
const SETTLING_MS = 20_000;

/** What the product holds while nothing is asked of it. */
export interface Holdings {
  readonly descriptors: number;
  /** Used, after everything was collected. */
  readonly heapBytes: number;
}

/** The product in a process of its own, with a watch over its log and what it holds. */
export interface ProductUnderTest {
  readonly product: Product;
  /** Reads what was logged since the last time, and forgets it. */
  readLog(): LogFlaw[];
  /** What it holds, once no call is under way. */
  holdings(): Promise<Holdings>;
  /**
   * What it still holds, beyond what it held before, when all connections are closed: the caller's by the caller, those to
   * upstreams here. In words; undefined when nothing.
   */
  leakSince(before: Holdings): Promise<string | undefined>;
  stop(): Promise<void>;
}

/** Notes what is wrong in the log since the last look. */
export function noteLog(tested: ProductUnderTest, findings: Findings): void {
  for (const { line, flaw } of tested.readLog())
    findings.note({ name: "log", bytes: Buffer.from(line) }, `${flaw}: ${line}`);
}

/** A line that must not have been written, and why. */
export interface LogFlaw {
  readonly line: string;
  readonly flaw: string;
}

/**
 * Starts it with a model of each dialect: a simulator behind those of two providers, and an upstream that says "hi" behind
 * `local/test`. Nothing is limited, so that every request comes as far as it can.
 */
export async function startProductUnderTest(): Promise<ProductUnderTest> {
  const upstream = await startUpstream((exchange) => {
    upstream.exchanges.length = 0;
    answerText(exchange, "hi");
  });
  const simulator = await startSimulator();
  const closeUpstreams = async (): Promise<void> => void (await Promise.all([upstream.close(), simulator.close()]));
  const { providers, models } = localModel(upstream.url) as { providers: { local: object }; models: object };
  const simulated = { base_url: simulator.url, allow_private: true, api_keys: [PLANTED[0]] };
  const product = await startProduct({
    config: {
      limits: UNLIMITED,
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      providers: {
        alpha: { dialect: "anthropic", ...simulated },
        beta: { dialect: "gemini", ...simulated },
        local: { ...providers.local, api_keys: [PLANTED[0]], headers: { "x-planted": PLANTED[1] } },
      },
      models,
    },
    env: { NODE_OPTIONS: "--inspect=127.0.0.1:0" },
  }).catch(async (error: unknown) => {
    await closeUpstreams();
    throw error;
  });
  const inspector = await connectInspector(product);
  const secrets = [...PLANTED, PLANTED_PROMPT, product.firstKey];
  const descriptors = (): number => readdirSync(`/proc/${product.pid}/fd`).length;
  const holdings = async (): Promise<Holdings> => {
    await until(async () => (await activeCalls(product)) === 0);
    await inspector.ask("HeapProfiler.collectGarbage");
    const { usedSize } = (await inspector.ask("Runtime.getHeapUsage")) as { usedSize: number };
    return { descriptors: descriptors(), heapBytes: usedSize };
  };
  return {
    product,
    readLog() {
      const lines = product.output.stderr.split("\n");
      product.output.stderr = lines.pop() ?? "";
      return lines.flatMap((line) => flawOfLine(line, secrets));
    },
    holdings,
    async leakSince(before) {
      await closeUpstreams();
      await until(async () => descriptors() <= before.descriptors + DESCRIPTOR_LEEWAY);
      const now = await holdings();
      const opened = now.descriptors - before.descriptors;
      if (opened > DESCRIPTOR_LEEWAY) return `${opened} descriptors more`;
      const grown = now.heapBytes - before.heapBytes;
      return grown > HEAP_LEEWAY ? `${grown} bytes of heap more` : undefined;
    },
    async stop() {
      inspector.close();
      await product.stop();
      await closeUpstreams();
    },
  };
}

/** What its program says of stack traces: frames, and paths of its sources. */
export const STACK_TRACE = /node:internal|\.ts:\d+|node_modules|^ +at \S/m;

function flawOfLine(line: string, secrets: readonly string[]): LogFlaw[] {
  if (line === "" || /^(Debugger |For help, see)/.test(line)) return [];
  const flaw = secrets.some((secret) => line.includes(secret)) ? "a secret" : flawOfEntry(line);
  return flaw === undefined ? [] : [{ line, flaw }];
}

function flawOfEntry(line: string): string | undefined {
  let entry: { readonly level?: string; readonly outcome?: string };
  try {
    entry = JSON.parse(line) as typeof entry;
  } catch {
    return "no JSON";
  }
  if (entry.outcome === "internal") return "an internal failure";
  if (entry.level !== "info" && entry.outcome === undefined) return `a line of the level ${entry.level}`;
  return STACK_TRACE.test(line) ? "a stack trace" : undefined;
}

async function activeCalls({ operationsUrl }: Product): Promise<number> {
  const ready = (await (await fetch(`${operationsUrl}/readyz`)).json()) as { active_calls: number };
  return ready.active_calls;
}

/** Waits for something that happens soon or never. */
async function until(happened: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + SETTLING_MS; Date.now() < end && !(await happened());) await sleep(50);
}

interface Inspector {
  ask(method: string): Promise<unknown>;
  close(): void;
}

/** Node's own debugger, which tells what is left of the heap when it is collected. */
async function connectInspector({ output }: Product): Promise<Inspector> {
  const url = /ws:\/\/\S+/.exec(output.stderr)?.[0];
  if (url === undefined) throw new Error(`no inspector in: ${output.stderr}`);
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  let asked = 0;
  return {
    ask(method) {
      const id = (asked += 1);
      const answered = new Promise<unknown>((resolve) => {
        socket.addEventListener("message", ({ data }) => {
          const said = JSON.parse(String(data)) as { id: number; result: unknown };
          if (said.id === id) resolve(said.result);
        });
      });
      socket.send(JSON.stringify({ id, method }));
      return answered;
    },
    close: () => socket.close(),
  };
}
