import { readdirSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Product, startProduct } from "../../support/product.ts";
import type { Findings } from "./findings.ts";
import { startSimulator } from "../../../src/simulator/server.ts";
import { answerText, localModel, startUpstream } from "../../product/support/upstream.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** Known to the product alone: no response and no log line may contain it. */
export const PLANTED = ["planted-credential-5dW1Tq8Zs", "planted-header-Jx3mP0vKe"] as const;
/** Sent by callers: no log line may contain it. */
export const PLANTED_PROMPT = "planted-prompt-Hq7Rt2Yb";

/** Permitted heap growth after all calls and a garbage collection: caches fill and code is compiled. */
const HEAP_LEEWAY = 24 * 1024 * 1024;
/** The database opens some of its files on first use: up to 4, and in the first minute 7 of a thread for a periodic job. */
const DESCRIPTOR_LEEWAY = 11;
/** Timeout for connections to close after their other end is closed. */
const SETTLING_MS = 20_000;
/** Time for which the number of descriptors must not change before they are counted. */
const STEADY_MS = 1_000;

/** Resources of the idle product. */
interface Holdings {
  /** What each descriptor refers to. */
  readonly descriptors: readonly string[];
  /** Used heap after a garbage collection. */
  readonly heapBytes: number;
}

/** The product as a process, with checks of its log and resources. */
export interface ProductUnderTest {
  readonly product: Product;
  /** Returns the log since the last call. */
  readLog(): LogFlaw[];
  /** Measures the resources once no call is in flight. */
  holdings(): Promise<Holdings>;
  /**
   * Describes resources beyond `before` once all connections are closed: the caller's by the caller, those to upstreams
   * here. Undefined if there are none.
   */
  leakSince(before: Holdings): Promise<string | undefined>;
  stop(): Promise<void>;
}

/** Records flaws in the log since the last call. */
export function noteLog(tested: ProductUnderTest, findings: Findings): void {
  for (const { line, flaw } of tested.readLog())
    findings.note({ name: "log", bytes: Buffer.from(line) }, `${flaw}: ${line}`);
}

/** Returns why a log line is not permitted, if it is not. */
interface LogFlaw {
  readonly line: string;
  readonly flaw: string;
}

/**
 * Starts the product with a model of each dialect: a simulator for those of two providers, and an upstream that says
 * "hi" for `local/test`. There are no limits, so that every request is processed as far as possible.
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
  const descriptors = (): string[] => openDescriptors(product.pid);
  const holdings = async (): Promise<Holdings> => {
    await until(async () => (await activeCalls(product)) === 0);
    // The program is ready before the thread that watches the stored configuration has started: 7 descriptors.
    await until(async () => {
      const { length } = descriptors();
      await sleep(STEADY_MS);
      return descriptors().length === length;
    });
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
      const most = before.descriptors.length + DESCRIPTOR_LEEWAY;
      await until(async () => descriptors().length <= most);
      const now = await holdings();
      if (now.descriptors.length > most) {
        const opened = now.descriptors.filter((each) => !before.descriptors.includes(each));
        return `${now.descriptors.length - before.descriptors.length} descriptors more; new: ${opened.join(", ")}`;
      }
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

/** Stack traces: frames, and paths of the sources. */
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

/** Waits for a condition, with a short timeout. */
async function until(happened: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + SETTLING_MS; Date.now() < end && !(await happened());) await sleep(50);
}

function openDescriptors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return [`${descriptor} ${readlinkSync(`/proc/${pid}/fd/${descriptor}`)}`];
    } catch {
      // Closed meanwhile.
      return [];
    }
  });
}

interface Inspector {
  ask(method: string): Promise<unknown>;
  close(): void;
}

/** Node's inspector, to collect garbage and read the heap size. */
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
