// node scripts/run.mjs scripts/python-clients.ts [arguments of pytest]: the tests in test/python, which try the product
// with the clients that Python programs use. Makes virtual environments in a temporary folder, installs there what
// test/python/requirements.txt and requirements-openai-2.txt say, starts the product and runs pytest against it. Needs Python 3.11 or newer with
// venv, and PyPI; fails where either cannot be had.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildContract } from "./reference/contract.ts";
import { createSpentKey, startThreeDialects } from "../test/product/support/three-dialects.ts";

const tests = fileURLToPath(new URL("../test/python", import.meta.url));
/** Variables of keys, addresses and switches. */
const READ_BY_CLIENTS = /^(ANTHROPIC|GEMINI|GOOGLE|LANGCHAIN|LANGSMITH|LOGFIRE|OPENAI)|_API_KEY$|^no_proxy$/;
const isWindows = process.platform === "win32";
const systemPython = isWindows ? "python" : "python3";

const folder = mkdtempSync(join(tmpdir(), "parley-python-"));
try {
  const python = await step("python -m venv", () => makeEnvironment("venv"));
  const otherPython = await step("python -m venv", () => makeEnvironment("other-venv"));
  await step("pip install", () => install(python, "requirements.txt"));
  await step("pip install", () => install(otherPython, "requirements-openai-2.txt"));
  await step("pytest", () => runTests(python, otherPython));
} catch (error) {
  console.error(
    `\nThe Python clients were not tried, or failed: ${error instanceof Error ? error.message : String(error)}`,
  );
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function step<T>(name: string, action: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await action();
  console.log(`ok  ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  return result;
}

/** Creates an environment and returns the path of its Python. */
async function makeEnvironment(name: string): Promise<string> {
  const check = "import sys; sys.exit(None if sys.version_info >= (3, 11) else 'this is Python ' + sys.version)";
  await run(systemPython, ["-c", check]);
  await run(systemPython, ["-m", "venv", join(folder, name)]);
  return join(folder, name, isWindows ? "Scripts/python.exe" : "bin/python");
}

async function install(python: string, requirements: string): Promise<void> {
  // Only wheels: nothing is compiled, and no package runs code of its own while it is installed. Python compiles what the
  // tests import, a small part of all.
  const options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--only-binary", ":all:"];
  await run(python, ["-m", "pip", "install", ...options, "--requirement", join(tests, requirements)]);
}

async function runTests(python: string, otherPython: string): Promise<void> {
  const protos = join(folder, "parley-protos.tar.gz");
  writeFileSync(protos, (await buildContract()).files.get("parley-protos.tar.gz")!);
  const running = await startThreeDialects();
  try {
    await run(python, ["-m", "pytest", "--config-file", join(tests, "pytest.ini"), ...process.argv.slice(2), tests], {
      PARLEY_BASE_URL: running.baseURL,
      PARLEY_API_KEY: running.apiKey,
      PARLEY_SPENT_KEY: await createSpentKey(running.product),
      PARLEY_GRPC: `127.0.0.1:${running.product.grpcPort}`,
      PARLEY_PROTOS: protos,
      PARLEY_CLIENTS_PAGE: fileURLToPath(new URL("../docs/clients.md", import.meta.url)),
      PARLEY_OTHER_PYTHON: otherPython,
      // Otherwise traces are sent to OpenAI.
      OPENAI_AGENTS_DISABLE_TRACING: "1",
      // Otherwise the clients use a proxy even for loopback.
      NO_PROXY: "127.0.0.1",
      PYTHONDONTWRITEBYTECODE: "1",
    });
  } finally {
    await running.stop();
  }
}

/**
 * Runs a program in the foreground, without the environment variables that clients, Python and pytest read. Its files are
 * removed with the temporary folder.
 */
async function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !READ_BY_CLIENTS.test(name) && !/^(PARLEY|PYTEST|PYTHON)/.test(name),
  );
  const options = { cwd: folder, env: { ...Object.fromEntries(inherited), ...env }, stdio: "inherit" } as const;
  const child = spawn(program, args, options);
  const [code] = (await once(child, "exit").catch((error: unknown) => {
    throw new Error(`${program} cannot be started`, { cause: error });
  })) as [number | null];
  if (code !== 0) throw new Error(`${program} ${args.slice(0, 2).join(" ")} ended with ${code ?? "a signal"}`);
}
