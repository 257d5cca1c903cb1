// npm run clients -- [--pack folder] [language…]: builds the client packages of clients/ (default: all of them) and runs
// their tests against the product. With --pack it runs no tests and puts the packages into a folder, each into one named
// after its language. A package is built in a temporary folder from its sources and the downloadable contract alone:
// `build.sh` generates code from the folder in $PARLEY_CONTRACT and builds the package into dist/ or a .tgz file,
// `test.sh` installs it and tests it. Needs the toolchain of each language and its package registry; fails where either
// cannot be had.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildContract } from "./reference/contract.ts";
import { startClientScenarios } from "../test/product/support/client-scenarios.ts";

const clients = fileURLToPath(new URL("../clients", import.meta.url));
const isPackage = (name: string): boolean => existsSync(join(clients, name, "build.sh"));
const languages = readdirSync(clients).filter(isPackage);

const { values, positionals } = parseArgs({ options: { pack: { type: "string" } }, allowPositionals: true });
const unknown = positionals.filter((name) => !languages.includes(name));

if (unknown.length > 0) {
  console.error(`clients/ has no package ${unknown.join(", ")}. It has ${languages.join(", ")}.`);
  process.exitCode = 2;
} else {
  await main(positionals.length > 0 ? positionals : languages, values.pack);
}

async function main(names: readonly string[], packFolder: string | undefined): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "parley-clients-"));
  try {
    const contract = join(folder, "contract");
    await unpackContract(contract);
    for (const name of names) {
      const copy = join(folder, name);
      cpSync(join(clients, name), copy, { recursive: true });
      if (packFolder === undefined) await buildAndTest(copy, contract);
      else await buildAndPack(copy, { contract, to: join(packFolder, name) });
    }
  } catch (error) {
    console.error(`\nThe client packages failed: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function unpackContract(folder: string): Promise<void> {
  const archive = (await buildContract()).files.get("parley-protos.tar.gz")!;
  mkdirSync(folder);
  writeFileSync(`${folder}.tar.gz`, archive);
  execFileSync("tar", ["-xzf", `${folder}.tar.gz`, "-C", folder]);
}

/** Each package has scenarios of its own: a breaker that one package's failures opened would fail the next one's tests. */
async function buildAndTest(copy: string, contract: string): Promise<void> {
  const scenarios = await startClientScenarios();
  try {
    const env = { ...scenarios.env, PARLEY_CONTRACT: contract };
    for (const script of ["build.sh", "test.sh"]) await runScript(script, copy, env);
  } finally {
    await scenarios.stop();
  }
}

async function buildAndPack(
  copy: string,
  { contract, to }: { readonly contract: string; readonly to: string },
): Promise<void> {
  await runScript("build.sh", copy, { PARLEY_CONTRACT: contract });
  const packed = readdirSync(copy).filter((name) => name.endsWith(".tgz"));
  for (const name of packed) cpSync(join(copy, name), join(to, name));
  if (packed.length === 0 && existsSync(join(copy, "dist"))) cpSync(join(copy, "dist"), to, { recursive: true });
}

/** Runs a script in the foreground, without the environment variables that clients read. */
async function runScript(script: string, cwd: string, env: Readonly<Record<string, string>>): Promise<void> {
  const startedAt = performance.now();
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PARLEY"));
  const options = { cwd, env: { ...Object.fromEntries(inherited), ...env }, stdio: "inherit" } as const;
  const child = spawn("bash", ["-euo", "pipefail", script], options);
  const [code] = (await once(child, "exit")) as [number | null];
  const name = basename(cwd);
  if (code !== 0) throw new Error(`${script} of ${name} ended with ${code ?? "a signal"}.`);
  console.log(`ok  ${name} ${script} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
}
