import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findProgram, SERVER_CORE, startPinned } from "../children.ts";
import { findFreePort, untilListening } from "../contestants/ports.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { CHAT_LAST_WORDS } from "../load/formats.ts";
import { runInstaller } from "./install.ts";

const VERSION = "v0.6.10";
const MODULE = "github.com/songquanpeng/one-api";

/** The program with its exact version. */
export const ONE_API = `one-api@${VERSION}`;

/** Its pages, which its release builds with npm; the program does not compile without a file of each theme. */
const THEMES = ["default", "berry", "air"];
/** It loads the tables of three tokenizers before it listens. */
const START_MS = 60_000;
/** Its cache of channels is renewed each second with `SYNC_FREQUENCY`; new channels are not seen before. */
const CHANNEL_MS = 2_000;
/** Number of Anthropic in its list of channel types (`relay/channeltype/define.go`). */
const ANTHROPIC = 14;
const TOKEN = "bench0bench0bench0bench0";
const ACCESS_TOKEN = "root0access0token0root0access0to";

/**
 * Builds one-api from its module, and returns its start function: key and quota in SQLite, cached; a log of each request
 * (its default), batched. It fetches tables of tokenizers when it starts, unless `TIKTOKEN_CACHE_DIR` names a folder with
 * them, and counts the tokens of each request with them.
 */
export async function installOneApi(folder: string): Promise<(setting: Setting) => Promise<RunningServer>> {
  const go = findProgram("go");
  if (go === undefined) throw new Error("go is missing");
  const downloaded = JSON.parse(await runInstaller(go, ["mod", "download", "-json", `${MODULE}@${VERSION}`])) as {
    readonly Dir: string;
  };
  const source = join(folder, "source");
  cpSync(downloaded.Dir, source, { recursive: true });
  // Files of the module cache are read-only.
  await runInstaller("chmod", ["-R", "u+w", source]);
  for (const theme of THEMES) {
    mkdirSync(join(source, "web/build", theme), { recursive: true });
    writeFileSync(join(source, "web/build", theme, "index.html"), "<!doctype html>");
  }
  const main = join(source, "main.go");
  writeFileSync(main, readFileSync(main, "utf8").replace('server.Run(":" + port)', 'server.Run("127.0.0.1:" + port)'));
  const program = join(folder, "one-api");
  await runInstaller(go, ["build", "-C", source, "-ldflags=-s -w", "-o", program, "."]);
  return async ({ load, upstreamPort, folder: scratch }) => {
    const port = await findFreePort();
    const home = mkdtempSync(join(scratch, "one-api-"));
    const child = startPinned({
      core: SERVER_CORE,
      program,
      args: ["--port", `${port}`, "--log-dir", home],
      stdio: "ignore",
      env: {
        GIN_MODE: "release",
        SQLITE_PATH: join(home, "one-api.db"),
        MEMORY_CACHE_ENABLED: "true",
        BATCH_UPDATE_ENABLED: "true",
        SYNC_FREQUENCY: "1",
        INITIAL_ROOT_TOKEN: TOKEN,
        INITIAL_ROOT_ACCESS_TOKEN: ACCESS_TOKEN,
      },
    });
    await untilListening(child, { port, limitMs: START_MS, name: ONE_API });
    await addChannel(port, { model: load.model, upstreamPort });
    return { name: ONE_API, process: child, port, key: `sk-${TOKEN}`, lastWords: CHAT_LAST_WORDS };
  };
}

async function addChannel(
  port: number,
  { model, upstreamPort }: { readonly model: string; readonly upstreamPort: number },
): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/api/channel/`, {
    method: "POST",
    headers: { authorization: ACCESS_TOKEN, "content-type": "application/json" },
    body: JSON.stringify({
      name: "bench",
      type: ANTHROPIC,
      key: "bench",
      base_url: `http://127.0.0.1:${upstreamPort}`,
      models: model,
      group: "default",
      groups: ["default"],
      model_mapping: "",
      config: "{}",
    }),
  });
  const { success, message } = (await response.json()) as { readonly success: boolean; readonly message: string };
  if (!success) throw new Error(`${ONE_API} takes no channel: ${message}`);
  await delay(CHANNEL_MS);
}
