// npm run bench: the cost of Parley relative to the floors. See bench/README.md.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { runTool } from "../scripts/tools.ts";
import type { Ready } from "./child.ts";
import { PEER_CORE, startOwn, stopChild } from "./children.ts";
import { ROOT } from "./contestants/parley.ts";
import { writeDocument } from "./document/write.ts";
import { conditions, machine } from "./machine.ts";
import { canReadCpuTime } from "./measure/cpu-time.ts";
import { hasProblem, type Measurements } from "./measurements.ts";
import { needsNoServer, type Options, readOptions } from "./options.ts";
import { measureCheckouts, measureInProcess, measureServers, type Place, profileServers } from "./parts.ts";

const RESULTS = join(import.meta.dirname, "results");
/** The build that `npm start` runs after a change of the sources. */
const BUILD_PROGRAM = "scripts/build-program.mjs";
const PROJECT = join(import.meta.dirname, "..");

try {
  await bench(readOptions(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

async function bench(options: Options): Promise<void> {
  if (!canReadCpuTime) throw new Error("Only Linux is measured: the CPU time of threads is read from /proc.");
  mkdirSync(RESULTS, { recursive: true });
  console.log(`${conditions().join(", ")}\n`);
  const { against } = options;
  if (against !== undefined) return compareWith(resolve(against), options);
  const measured: Measurements = {
    loads: [],
    latency: [],
    scenarios: [],
    formats: [],
    targets: [],
    growth: [],
    workers: [],
    peers: [],
    peerTables: [],
  };
  if (!options.profile) await measureInProcess(options, measured);
  if (options.profile || !needsNoServer(options.parts)) {
    await runTool(process.execPath, [join(ROOT, BUILD_PROGRAM)]);
    await withUpstream((place) =>
      options.profile ? profileServers(place, options, RESULTS) : measureServers(place, options, measured),
    );
  }
  if (!options.profile) save(options, measured);
  if (hasProblem(measured)) process.exitCode = 1;
}

async function compareWith(against: string, options: Options): Promise<void> {
  for (const checkout of [against, ROOT]) await runTool(process.execPath, [join(checkout, BUILD_PROGRAM)]);
  await withUpstream(async (place) => {
    const results = await measureCheckouts(place, options, against);
    if (results.some((load) => load.results.some(({ problem }) => problem !== undefined))) process.exitCode = 1;
  });
}

/** Starts the mock upstream and makes a temporary folder for `run`; removes both afterwards. */
async function withUpstream(run: (place: Place) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  // Runs after the exit handler that kills the children.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  const [upstream, { port: upstreamPort }] = await startOwn<Ready>({ core: PEER_CORE, file: "upstream/server.ts" });
  try {
    await run({ upstreamPort, folder, upstream: upstream.pid! });
  } finally {
    await stopChild(upstream);
  }
}

function save({ rounds, seconds, write }: Options, measured: Measurements): void {
  const file = join(RESULTS, "latest.json");
  const document = { at: new Date().toISOString(), conditions: conditions(), rounds, seconds, ...measured };
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
  console.log(`Results of all slices: ${file}`);
  if (!write) return;
  const command = `npm run bench -- ${process.argv.slice(2).join(" ")}`;
  const date = document.at.slice(0, 10);
  const written = writeDocument(PROJECT, measured, { date, machine: machine(), command, rounds, seconds });
  console.log(`Document: ${written}`);
}
