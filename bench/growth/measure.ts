import { stopChild } from "../children.ts";
import { type Start, withLineUp } from "../contestants/line-up.ts";
import { type OpenStreams, startOpenStreams } from "../contestants/open-streams.ts";
import { createKey, type Home, launch, makeHome, PARLEY, startParley } from "../contestants/parley.ts";
import { probe } from "../contestants/probe.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { CHAT_LAST_WORDS } from "../load/formats.ts";
import { heldStream, type Load, UNARY } from "../loads.ts";
import { type LoadResult, summarise } from "../measure/result.ts";
import { type RoundsOptions, runRounds } from "../measure/rounds.ts";
import { Filler } from "./fill.ts";

/** Numbers of keys, ledger entries and open streams. */
export interface GrowthSize {
  readonly keys: number;
  readonly entries: number;
  readonly streams: number;
}

/** Sizes for a run of all parts. */
export const USUAL_GROWTH: GrowthSize = { keys: 100_000, entries: 1_000_000, streams: 5_000 };
/** Takes some minutes and some GB of disk. */
export const LONG_GROWTH: GrowthSize = { keys: 1_000_000, entries: 10_000_000, streams: 5_000 };

const FEW = 10;
/** Keys in use, of many. */
const KEYS_IN_USE = 1_000;
/** Interval of events of open streams, long enough that they cost nothing. */
const EVERY_MS = 30_000;

interface Variant {
  readonly name: string;
  readonly start: Start;
}

const number = (count: number): string => count.toLocaleString("en");

/** Cost of a request with small and with large data: one comparison for each kind. */
export async function* measureGrowth(
  place: Omit<Setting, "load">,
  options: RoundsOptions,
  size: GrowthSize,
): AsyncGenerator<LoadResult> {
  const setting = { ...place, load: { ...UNARY, part: "growth" } as const };
  const keys = {
    what: "keys",
    small: await withDatabase(setting, `${PARLEY}, ${number(FEW)} keys`, { keys: FEW, entries: 0 }),
    large: await withDatabase(setting, `${PARLEY}, ${number(size.keys)} keys`, { keys: size.keys, entries: 0 }),
  };
  yield await compareVariants(keys, setting, options);
  const entries = {
    what: "ledger entries",
    small: await withDatabase(setting, `${PARLEY}, 0 entries`, { keys: 0, entries: 0 }),
    large: await withDatabase(setting, `${PARLEY}, ${number(size.entries)} entries`, {
      keys: 0,
      entries: size.entries,
    }),
  };
  yield await compareVariants(entries, setting, options);
  const opened: OpenStreams[] = [];
  const endStreams = async (): Promise<void> => void (await Promise.all(opened.map((streams) => streams.stop())));
  const streams = {
    what: "open streams",
    small: withStreams(FEW, opened),
    large: withStreams(size.streams, opened),
    // A server waits for its streams before it exits.
    afterwards: endStreams,
  };
  try {
    yield await compareVariants(streams, setting, options);
  } finally {
    await endStreams();
  }
}

interface Growth {
  /** Compared sizes: small and large. */
  readonly what: string;
  readonly small: Variant;
  readonly large: Variant;
  /** Runs before the servers are stopped. */
  readonly afterwards?: () => Promise<void>;
}

async function compareVariants(
  { what, small, large, afterwards }: Growth,
  setting: Setting,
  options: RoundsOptions,
): Promise<LoadResult> {
  const load: Load = { ...setting.load, name: `growth by ${what}: ${setting.load.name}` };
  return withLineUp(setting, [small.start, large.start], async (contestants) => {
    const series = await runRounds(load, contestants, options);
    await afterwards?.();
    return summarise(load, series, small.name);
  });
}

/** Starts Parley on a database filled to this size. */
async function withDatabase(
  setting: Setting,
  name: string,
  { keys, entries }: { readonly keys: number; readonly entries: number },
): Promise<Variant> {
  const home = makeHome(setting);
  let secrets = [await useOnce(home, setting.load)];
  const filler = new Filler(home.dataDir);
  try {
    if (keys > 0) secrets = [...filler.addKeys(keys, Math.min(keys, KEYS_IN_USE))];
    if (entries > 0) filler.addEntries(entries);
  } finally {
    filler.close();
  }
  const start: Start = async () => ({ ...toServer(name, await launch(home), secrets[0]!), keys: secrets });
  return { name, start };
}

/** Makes Parley write its first key and ledger entry. Returns the key. */
async function useOnce(home: Home, load: Load): Promise<string> {
  const key = createKey(home);
  const launched = await launch(home);
  try {
    await probe(toServer(PARLEY, launched, key), load);
    return key;
  } finally {
    await stopChild(launched.child);
  }
}

function toServer(name: string, { child, httpPort }: Awaited<ReturnType<typeof launch>>, key: string): RunningServer {
  return { name, process: child, port: httpPort, key, lastWords: CHAT_LAST_WORDS };
}

/** Starts Parley with this number of open streams. */
function withStreams(count: number, opened: OpenStreams[]): Variant {
  const name = `${PARLEY}, ${number(count)} open streams`;
  const held = heldStream("growth", EVERY_MS);
  const start: Start = async (setting) => {
    const server = await startParley({ ...setting, moreModels: [held.model] });
    const streams = await startOpenStreams(held, server);
    opened.push(streams);
    await streams.hold(count);
    return { ...server, name };
  };
  return { name, start };
}
