import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { stopChild } from "../children.ts";
import { PARLEY, PARLEY_INTERVAL } from "../contestants/parley.ts";
import { probe } from "../contestants/probe.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { installLiteLlm, LITELLM } from "./litellm.ts";
import { BUSBAR, findBusbar, findGoModel, findGoModelWithLog, GOMODEL, GOMODEL_WITH_LOG } from "./named.ts";
import { installOneApi, ONE_API } from "./one-api.ts";
import { installPortkey, PORTKEY } from "./portkey.ts";

/** What a gateway does for each request, beside forwarding it. */
export interface Duties {
  readonly name: string;
  readonly keys: string;
  readonly limits: string;
  readonly record: string;
}

interface Peer extends Duties {
  /** Installs it into a folder, or finds it; throws an Error with the reason when that is not possible. */
  readonly install: (folder: string) => Promise<(setting: Setting) => Promise<RunningServer>>;
  /** False for one that falls behind the paced streams and the open loops. */
  readonly keepsPace: boolean;
}

const PEERS: readonly Peer[] = [
  {
    name: BUSBAR,
    install: findBusbar,
    keepsPace: true,
    keys: "signed",
    limits: "calls in flight of a model",
    record: "sums of usage in memory",
  },
  {
    name: GOMODEL,
    install: findGoModel,
    keepsPace: true,
    keys: "one master key",
    limits: "none",
    record: "usage in SQLite, every 5 s",
  },
  {
    name: GOMODEL_WITH_LOG,
    install: findGoModelWithLog,
    keepsPace: true,
    keys: "one master key",
    limits: "none",
    record: "usage and a log of requests in SQLite, every 5 s",
  },
  { name: PORTKEY, install: installPortkey, keepsPace: true, keys: "none", limits: "none", record: "none" },
  {
    name: ONE_API,
    install: installOneApi,
    keepsPace: true,
    keys: "in SQLite, cached",
    limits: "quota of a key",
    record: "a log of requests in SQLite; quotas every 5 s",
  },
  // 1,300 chunks a second of 2,000, and some 70 requests a second.
  { name: LITELLM, install: installLiteLlm, keepsPace: false, keys: "one master key", limits: "none", record: "none" },
];

const OWN_LIMITS = "rates, tokens and calls in flight of a key and an account";

/** What Parley and all peers do for each request. */
export const DUTIES: readonly Duties[] = [
  { name: PARLEY, keys: "in SQLite, cached", limits: OWN_LIMITS, record: "ledger in SQLite, before the answer ends" },
  { name: PARLEY_INTERVAL, keys: "in SQLite, cached", limits: OWN_LIMITS, record: "ledger in SQLite, every 50 ms" },
  ...PEERS,
];

/** A peer that can be started. */
export interface InstalledPeer {
  readonly keepsPace: boolean;
  /** Undefined when it answers incorrectly after its start; the reason is printed. */
  readonly start: (setting: Setting) => Promise<RunningServer | undefined>;
}

/**
 * Installs other gateways into subfolders of `folder`. One that cannot be installed, or answers incorrectly after its
 * start, is omitted; `say` gets the reason.
 */
export async function installPeers(folder: string, say: (text: string) => void): Promise<readonly InstalledPeer[]> {
  const installed: InstalledPeer[] = [];
  for (const { name, install, keepsPace } of PEERS) {
    try {
      say(`installing ${name} …`);
      const start = await install(mkdtempSync(join(folder, "peer-")));
      installed.push({ keepsPace, start: (setting) => startOrOmit(name, setting, { start, say }) });
    } catch (error) {
      say(`${name} is omitted: ${String(error)}`);
    }
  }
  return installed;
}

interface Attempt {
  readonly start: (setting: Setting) => Promise<RunningServer>;
  readonly say: (text: string) => void;
}

async function startOrOmit(
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
    say(`${name} is omitted from "${setting.load.name}": ${String(error)}`);
    return undefined;
  }
}
