// npm run bench: what Parley costs beside the bare floors. bench/README.md says how to read it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import type { Ready } from "./child.ts";
import { isPinned, PEER_CORE, startOwn, stopChild } from "./children.ts";
import { compare, watchLoops } from "./compare.ts";
import { nginxPath } from "./contestants/floors.ts";
import { planLoads } from "./loads.ts";
import { type AccountingCost, formatAccounting, measureAccounting } from "./accounting/measure.ts";
import { canReadCpuTime } from "./measure/cpu-time.ts";
import type { LoadResult } from "./measure/result.ts";
import { needsNoServer, type Options, readOptions } from "./options.ts";
import { profileLoad } from "./profile/run.ts";
import { formatLoad } from "./report.ts";
import { formatTranslation, measureTranslation, type TranslationResult } from "./translate/measure.ts";

const RESULTS = join(import.meta.dirname, "results");

try {
  await bench(readOptions(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

async function bench(options: Options): Promise<void> {
  if (!canReadCpuTime) throw new Error("Only Linux is measured: the CPU time of threads is read from /proc.");
  mkdirSync(RESULTS, { recursive: true });
  console.log(`Node ${process.versions.node}, ${conditions().join(", ")}\n`);
  const translation = options.parts.includes("translate") && !options.profile ? translate(options) : undefined;
  const accounting = options.parts.includes("accounting") && !options.profile ? await account(options) : undefined;
  if (needsNoServer(options.parts)) return save(options, [], { translation, accounting });
  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  // After the children have been ended, however this ends.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  const [upstream, { port: upstreamPort }] = await startOwn<Ready>({ core: PEER_CORE, file: "upstream/server.ts" });
  try {
    const results: LoadResult[] = [];
    for (const load of planLoads(options.parts, options)) {
      const setting = { load, upstreamPort, folder };
      if (options.profile) {
        console.log(`${await profileLoad(setting, RESULTS)}\n`);
        continue;
      }
      const rounds = { ...options, upstream: upstream.pid! };
      const compared = await compare(setting, rounds);
      const result = load.watchesLoop ? { ...compared, loopDelays: await watchLoops(setting, rounds) } : compared;
      console.log(`${formatLoad(result)}\n`);
      results.push(result);
    }
    if (!options.profile) save(options, results, { translation, accounting });
    if (results.some((result) => result.results.some(({ problem }) => problem !== undefined))) process.exitCode = 1;
  } finally {
    await stopChild(upstream);
  }
}

/** What of this machine the figures depend on. */
function conditions(): readonly string[] {
  return [
    cpus()[0]?.model.trim() ?? "unknown processor",
    isPinned ? "server on a core of its own" : "processes not bound to cores (no taskset, or one core)",
    ...(nginxPath === undefined ? ["nginx is not installed and left out"] : []),
  ];
}

/** In this process: nothing of it waits for anybody. */
function translate({ rounds }: Options): TranslationResult {
  const result = measureTranslation(rounds);
  console.log(`${formatTranslation(result)}\n`);
  return result;
}

/** In this process, too. */
async function account({ rounds }: Options): Promise<readonly AccountingCost[]> {
  const costs = await measureAccounting(rounds);
  console.log(`${formatAccounting(costs)}\n`);
  return costs;
}

interface InProcess {
  readonly translation: TranslationResult | undefined;
  readonly accounting: readonly AccountingCost[] | undefined;
}

function save({ rounds, seconds }: Options, loads: readonly LoadResult[], inProcess: InProcess): void {
  const file = join(RESULTS, "latest.json");
  const at = new Date().toISOString();
  const document = { at, node: process.versions.node, conditions: conditions(), rounds, seconds, loads, ...inProcess };
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
  console.log(`Every slice is in ${file}.`);
}
