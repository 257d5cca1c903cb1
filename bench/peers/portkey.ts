import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram, SERVER_CORE, startPinned } from "../children.ts";
import { CHAT_LAST_WORDS } from "../load/formats.ts";
import { findFreePort, untilListening } from "../contestants/ports.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { runInstaller } from "./install.ts";

const VERSION = "1.15.2";

/** The package with its exact version. */
export const PORTKEY = `@portkey-ai/gateway@${VERSION}`;

/** Its HTTP server. With later ones that its package allows, on a new Node, all its streams end in a 500. */
const OVERRIDES = { "@hono/node-server": "1.13.8" };

const START_MS = 20_000;

/**
 * Installs Portkey's gateway, and returns its start function: on this Node, in production mode, without its log pages
 * (`--headless`). It checks no key and has no ledger.
 */
export async function installPortkey(folder: string): Promise<(setting: Setting) => Promise<RunningServer>> {
  const npm = findProgram("npm");
  if (npm === undefined) throw new Error("npm is missing");
  const wanted = { private: true, dependencies: { "@portkey-ai/gateway": VERSION }, overrides: OVERRIDES };
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted));
  await runInstaller(npm, ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts"]);
  const program = join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js");
  return async ({ upstreamPort }) => {
    const port = await findFreePort();
    const child = startPinned({
      core: SERVER_CORE,
      program: process.execPath,
      args: [program, "--headless", `--port=${port}`],
      stdio: "ignore",
      env: { NODE_ENV: "production" },
    });
    await untilListening(child, { port, limitMs: START_MS, name: PORTKEY });
    const headers = {
      "x-portkey-provider": "anthropic",
      "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`,
    };
    return { name: PORTKEY, process: child, port, key: "bench", headers, lastWords: CHAT_LAST_WORDS };
  };
}
