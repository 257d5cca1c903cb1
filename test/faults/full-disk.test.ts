import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_WAITING } from "../../src/ledger/ledger.ts";
import { RESERVED_BYTES } from "../../src/ledger/spill.ts";
import { idsIn } from "../replicas/support/written-ids.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { says, type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { MAY_MOUNT, mountDisk, type SmallDisk } from "../support/small-disk.ts";
import { postChat } from "../support/post-json.ts";

const CALLERS = 10;
const MIB = 1024 * 1024;

let upstream: ScriptedUpstream;
let home: string;
let disk: SmallDisk;
let product: Product;
beforeEach(async () => {
  upstream = await startScriptedUpstream();
  upstream.script("m", [says("one two three")]);
  home = makeHome();
});
afterEach(async () => {
  await product.stop();
  disk.unmount();
  rmSync(home, { recursive: true });
  await upstream.close();
});

const start = (): Promise<Product> =>
  startProduct({
    home,
    config: {
      log: { level: "warn" },
      limits: { requests_per_minute: "unlimited" },
      providers: { local: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true } },
      models: { m: { provider: "local", upstream_model: "m", max_output_tokens: 100 } },
    },
  });

/** Asks with several callers until it is stopped. */
function startCallers(key: string) {
  const counts: Record<number, number> = {};
  const ids: string[] = [];
  const stopping = new AbortController();
  const call = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const response = await postChat(product.url, key, { model: "m" });
      const text = await response.text();
      counts[response.status] = (counts[response.status] ?? 0) + 1;
      if (response.status === 200) ids.push((JSON.parse(text) as { id: string }).id);
      else await delay(20);
    }
  };
  const calls = Array.from({ length: CALLERS }, call);
  return {
    counts,
    ids,
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all(calls);
    },
  };
}

interface Ready {
  readonly ready: boolean;
  readonly database: { readonly up: boolean };
  readonly ledger: { readonly waiting: number; readonly away: boolean; readonly unwritable: boolean };
}

const readiness = async (): Promise<Ready> => (await fetch(`${product.operationsUrl}/readyz`)).json() as Promise<Ready>;

/** Fills the disk under load until completions are refused, and stops the callers some time later. */
async function runFull(): Promise<readonly string[]> {
  const callers = startCallers(product.firstKey);
  await expect.poll(() => callers.ids.length, { timeout: 10_000 }).toBeGreaterThan(20);
  disk.fill();
  await expect.poll(() => callers.counts[503] ?? 0, { timeout: 20_000 }).toBeGreaterThan(CALLERS);
  const answered = callers.ids.length;
  await delay(2_000);
  // Those that were in flight at the first failed write end as usual.
  expect(callers.ids.length - answered).toBeLessThanOrEqual(CALLERS);
  const { ready, database, ledger } = await readiness();
  expect({ ready, up: database.up, unwritable: ledger.unwritable }).toEqual({
    ready: false,
    up: false,
    unwritable: true,
  });
  expect(ledger.waiting).toBeGreaterThan(0);
  expect(await (await fetch(`${product.operationsUrl}/metrics`)).text()).toMatch(/^parley_database_up\S* 0$/m);
  await callers.stop();
  return callers.ids;
}

const files = (): readonly string[] => readdirSync(join(home, "data")).filter((name) => name.startsWith("unwritten-"));

describe.skipIf(!MAY_MOUNT)("a full disk with SQLite", () => {
  it("refuses completions, and loses none that was answered when the process is stopped", async () => {
    disk = mountDisk(join(home, "data"), 40 * MIB);
    product = await start();
    expect(files()).toEqual(["unwritten-ledger-1.reserve"]);
    const answered = await runFull();
    product.signal("SIGTERM");
    expect(await product.ending).toEqual({ code: 0, signal: null });
    const names = files();
    expect(names.filter((name) => !name.endsWith(".jsonl"))).toEqual([]);
    const text = names.map((name) => readFileSync(join(home, "data", name), "utf8")).join("");
    // The reserved space is enough for as many as may wait.
    expect(text.length / (text.split("\n").length - 1)).toBeLessThan(RESERVED_BYTES / MAX_WAITING);
    disk.free();
    product = await start();
    expect(files()).toEqual(["unwritten-ledger-1.reserve"]);
    const written = await idsIn(join(home, "data"), undefined);
    expect(new Set(written).size).toBe(written.length);
    expect(answered.filter((id) => !written.includes(id))).toEqual([]);
  }, 90_000);

  it("has unwritten entries in the log when it had no space to reserve, from which the next start can read them", async () => {
    disk = mountDisk(join(home, "data"), 6 * MIB);
    product = await start();
    const answered = await runFull();
    product.signal("SIGTERM");
    expect(await product.ending).toEqual({ code: 0, signal: null });
    const lines = product.output.stderr
      .trim()
      .split("\n")
      .map(
        (line) =>
          JSON.parse(line) as { readonly level: string; readonly ledger_entry?: object; readonly entries?: number },
      );
    const entries = lines.flatMap(({ ledger_entry }) => ledger_entry ?? []);
    expect(lines.find(({ level }) => level === "fatal")).toMatchObject({ entries: entries.length });
    disk.free();
    writeFileSync(
      join(home, "data", "unwritten-ledger-1.jsonl"),
      entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""),
    );
    product = await start();
    const written = await idsIn(join(home, "data"), undefined);
    expect(answered.filter((id) => !written.includes(id))).toEqual([]);
  }, 90_000);

  it("ends without a restart once there is space", async () => {
    disk = mountDisk(join(home, "data"), 40 * MIB);
    product = await start();
    const answered = [...(await runFull())];
    disk.free();
    await expect.poll(async () => (await readiness()).ready, { timeout: 10_000 }).toBe(true);
    expect((await readiness()).database.up).toBe(true);
    const callers = startCallers(product.firstKey);
    await expect.poll(() => callers.ids.length, { timeout: 10_000 }).toBeGreaterThan(20);
    await callers.stop();
    expect(callers.counts).toEqual({ 200: callers.ids.length });
    product.signal("SIGTERM");
    await product.ending;
    const written = await idsIn(join(home, "data"), undefined);
    expect([...answered, ...callers.ids].filter((id) => !written.includes(id))).toEqual([]);
  }, 90_000);
});
