import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { stopChild } from "../children.ts";
import type { Start } from "../contestants/line-up.ts";
import { probe } from "../contestants/probe.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { type Load, pacedStreams, UNARY } from "../loads.ts";
import { installLiteLlm, LITELLM } from "./litellm.ts";
import { installPortkey, PORTKEY } from "./portkey.ts";

/** Few enough streams for Portkey to keep the pace. */
const STREAMS = { streams: 20, chunks: 100 };

/** Loads for peers. */
export const PEER_LOADS: readonly Load[] = [
  { ...UNARY, part: "peers", name: `${UNARY.name}, beside other gateways` },
  { ...pacedStreams("peers", STREAMS), name: `${STREAMS.streams} paced streams, beside other gateways` },
];

const PEERS = [
  { name: PORTKEY, install: installPortkey, keepsPace: true },
  // It falls behind 20 paced streams (1,300 chunks a second of 2,000), so it has no figure.
  { name: LITELLM, install: installLiteLlm, keepsPace: false },
] as const;

/**
 * Installs other gateways into subfolders of `folder`. One that cannot be installed, or answers incorrectly after its
 * start, is omitted; `say` gets the reason.
 */
export async function installPeers(folder: string, say: (text: string) => void): Promise<readonly Start[]> {
  const starts: Start[] = [];
  for (const { name, install, keepsPace } of PEERS) {
    try {
      say(`installing ${name} …`);
      const start = await install(mkdtempSync(join(folder, "peer-")));
      starts.push(async (setting) => {
        if (keepsPace || !setting.load.streamed) return startOrLeaveOut(name, setting, { start, say });
        say(`${name} is left out of "${setting.load.name}": it does not keep the pace`);
        return undefined;
      });
    } catch (error) {
      say(`${name} is left out: ${String(error)}`);
    }
  }
  return starts;
}

interface Attempt {
  readonly start: (setting: Setting) => Promise<RunningServer>;
  readonly say: (text: string) => void;
}

async function startOrLeaveOut(
  name: string,
  setting: Setting,
  { start, say }: Attempt,
): Promise<RunningServer | undefined> {
  let server: RunningServer | undefined;
  try {
    server = await start(setting);
    await probe(server, setting.load);
    return server;
  } catch (error) {
    if (server !== undefined) await stopChild(server.process);
    say(`${name} is left out of "${setting.load.name}": ${String(error)}`);
    return undefined;
  }
}
