import { randomBytes } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram, SERVER_CORE, startPinned } from "../children.ts";
import { CHAT_LAST_WORDS } from "../load/formats.ts";
import { findFreePort, untilListening } from "../contestants/ports.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { runInstaller } from "./install.ts";

/** The package with its exact version. */
export const LITELLM = "litellm[proxy]==1.106.2";

/** Time limit of its start, which loads many modules. */
const START_MS = 90_000;
const NEEDED_PYTHON = "import sys; sys.exit(sys.version_info < (3, 10))";

/**
 * Installs LiteLLM's proxy in a virtual environment, and returns its start function: one worker on uvloop, in production
 * mode, log at errors only, without telemetry, database and retries, with one key (which it
 * requires) and its built-in prices.
 */
export async function installLiteLlm(folder: string): Promise<(setting: Setting) => Promise<RunningServer>> {
  const python = findProgram("python3");
  if (python === undefined) throw new Error("python3 is missing");
  await runInstaller(python, ["-c", NEEDED_PYTHON]).catch(() => {
    throw new Error("it needs Python 3.10 or newer");
  });
  await runInstaller(python, ["-m", "venv", folder]);
  const programs = join(folder, "bin");
  await runInstaller(join(programs, "pip"), ["install", "--quiet", "--disable-pip-version-check", LITELLM]);
  return async ({ load, upstreamPort, folder: scratch }) => {
    const port = await findFreePort();
    const file = join(mkdtempSync(join(scratch, "litellm-")), "config.yaml");
    // A JSON document is a YAML document.
    writeFileSync(file, JSON.stringify(configOf(load.model, upstreamPort)));
    const key = `sk-${randomBytes(32).toString("hex")}`;
    const child = startPinned({
      core: SERVER_CORE,
      program: join(programs, "python"),
      args: [
        join(programs, "litellm"),
        "--config",
        file,
        "--host",
        "127.0.0.1",
        "--port",
        `${port}`,
        "--num_workers",
        "1",
      ],
      stdio: "ignore",
      env: {
        LITELLM_MASTER_KEY: key,
        LITELLM_MODE: "PRODUCTION",
        LITELLM_LOG: "ERROR",
        LITELLM_LOCAL_MODEL_COST_MAP: "True",
      },
    });
    await untilListening(child, { port, limitMs: START_MS, name: LITELLM });
    return { name: LITELLM, process: child, port, key, lastWords: CHAT_LAST_WORDS };
  };
}

function configOf(model: string, upstreamPort: number): object {
  const api_base = `http://127.0.0.1:${upstreamPort}`;
  return {
    model_list: [{ model_name: model, litellm_params: { model: `anthropic/${model}`, api_base, api_key: "bench" } }],
    litellm_settings: { telemetry: false, num_retries: 0, set_verbose: false },
  };
}
