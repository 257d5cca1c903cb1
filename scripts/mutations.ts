// npm run mutations [-- words that a promise contains]: applies one bug after the other to a copy of the sources, and
// runs the simulation, which has to detect it. Ends with 1 when a mutation was not detected, and at once
// with the list of those whose text is no longer in the source.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS, type Mutation } from "../test/mutations/mutations.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Not copied: unused by tests, or generated. */
const LEFT_OUT = new Set(["node_modules", ".git", "data", "bench/results", "bench/tmp", "screenshots"]);
const LIMIT_MS = 5 * 60_000;

const words = process.argv.slice(2);
const chosen = MUTATIONS.filter(({ promise }) => words.every((word) => promise.includes(word)));
const unfit = chosen.filter(({ file, text }) => {
  const path = join(ROOT, file);
  return !existsSync(path) || readFileSync(path, "utf8").split(text).length !== 2;
});
for (const { promise, file, text } of unfit) console.error(`${file} no longer has, once, for «${promise}»: ${text}`);
if (unfit.length > 0) {
  console.error(`Bring ${unfit.length} of test/mutations/mutations.ts up to date with the source.`);
  process.exit(1);
}
const copy = await mkdtemp(join(tmpdir(), "parley-mutations-"));
let detected = 0;
try {
  await cp(ROOT, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(ROOT, path)) });
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  for (const mutation of chosen) {
    const beganMs = performance.now();
    const isDetected = await detects(mutation);
    const seconds = ((performance.now() - beganMs) / 1_000).toFixed(1);
    console.log(
      `${isDetected ? "detected  " : "UNDETECTED"} ${seconds.padStart(6)} s  ${mutation.promise} (${mutation.file})`,
    );
    if (isDetected) detected += 1;
  }
} finally {
  await rm(copy, { recursive: true, force: true });
}
console.log(`${detected} of ${chosen.length} mutations were detected`);
if (detected < chosen.length) process.exitCode = 1;

/** Whether the simulation fails with the mutation; `npm run faults` proves that it passes without. */
async function detects({ file, text, by }: Mutation): Promise<boolean> {
  const path = join(copy, file);
  const source = await readFile(path, "utf8");
  await writeFile(
    path,
    source.replace(text, () => by),
  );
  try {
    return simulationFails();
  } finally {
    await writeFile(path, source);
  }
}

function simulationFails(): boolean {
  const report = join(copy, "mutation-report.json");
  rmSync(report, { force: true });
  const options = ["run", "--config", "vitest.faults.config.ts", "--bail=1", "test/faults/simulation.test.ts"];
  const run = spawnSync("vitest", [...options, "--reporter=json", `--outputFile=${report}`], {
    cwd: copy,
    stdio: "ignore",
    timeout: LIMIT_MS,
  });
  // A simulation that does not end, or ends without a report, has detected the mutation.
  const isLate = run.error !== undefined && "code" in run.error && run.error.code === "ETIMEDOUT";
  if (run.error !== undefined && !isLate) throw run.error;
  if (isLate || run.status !== 0 || !existsSync(report)) return true;
  // Vitest's exit code is not sufficient: the code that stops PostgreSQL at exit overwrites it with 0.
  return !(JSON.parse(readFileSync(report, "utf8")) as { success: boolean }).success;
}
