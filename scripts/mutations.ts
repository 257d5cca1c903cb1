// npm run mutations [-- words that a promise contains]: breaks one promise after the other in a copy of the sources, and
// runs the tests that have to notice. Ends with 1 when one went unnoticed.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { MUTATIONS, type Mutation } from "../test/mutations/mutations.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** What no test reads, or is made anew. */
const LEFT_OUT = new Set(["node_modules", ".git", "data", "bench/results", "bench/tmp", "screenshots"]);
const LIMIT_MS = 5 * 60_000;

const words = process.argv.slice(2);
const chosen = MUTATIONS.filter(({ promise }) => words.every((word) => promise.includes(word)));
const copy = await mkdtemp(join(tmpdir(), "parley-mutations-"));
let unnoticed = 0;
try {
  await cp(ROOT, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(ROOT, path)) });
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  for (const mutation of chosen) {
    const beganMs = performance.now();
    const noticed = await isNoticed(mutation);
    const seconds = ((performance.now() - beganMs) / 1_000).toFixed(1);
    console.log(`${noticed ? "noticed  " : "UNNOTICED"} ${seconds.padStart(6)} s  ${mutation.promise}`);
    if (!noticed) unnoticed += 1;
  }
} finally {
  await rm(copy, { recursive: true, force: true });
}
console.log(`${chosen.length - unnoticed} of ${chosen.length} mutations were noticed`);
if (unnoticed > 0) process.exitCode = 1;

/** Whether at least one of the tests fails with the mutation; `npm test` and `npm run faults` prove that all pass without. */
async function isNoticed({ file, text, by, tests }: Mutation): Promise<boolean> {
  const path = join(copy, file);
  const source = await readFile(path, "utf8");
  await writeFile(
    path,
    source.replace(text, () => by),
  );
  const ofFaults = tests.filter((name) => name.startsWith("test/faults/"));
  const others = tests.filter((name) => !ofFaults.includes(name));
  try {
    return fails("vitest.config.ts", others) || fails("vitest.faults.config.ts", ofFaults);
  } finally {
    await writeFile(path, source);
  }
}

function fails(config: string, tests: readonly string[]): boolean {
  if (tests.length === 0) return false;
  const report = join(copy, "mutation-report.json");
  rmSync(report, { force: true });
  const reporting = ["--reporter=json", `--outputFile=${report}`];
  const run = spawnSync("vitest", ["run", "--config", config, "--bail=1", ...reporting, ...tests], {
    cwd: copy,
    stdio: "ignore",
    timeout: LIMIT_MS,
  });
  // Tests that never end have noticed, too; so have those that end without a report.
  const isLate = run.error !== undefined && "code" in run.error && run.error.code === "ETIMEDOUT";
  if (run.error !== undefined && !isLate) throw run.error;
  if (isLate || run.status !== 0 || !existsSync(report)) return true;
  // Vitest's own exit code is not enough: what stops PostgreSQL at its end puts a 0 in its place.
  return !(JSON.parse(readFileSync(report, "utf8")) as { success: boolean }).success;
}
