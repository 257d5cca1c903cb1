import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { makeHome, runProduct } from "../support/product.ts";
import { says } from "../support/scripted-upstream.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { type CopyTarget, folderTarget, openLitestream, startBucket } from "./support/litestream.ts";
import { startLoad } from "./support/load.ts";
import { idsIn } from "./support/written-ids.ts";

const CALLERS = 8;
const LOAD_MS = 4_000;
/** What docs/operations/backup.md promises: entries that are older than this when a machine is lost are in the copy. */
const BOUND_MS = 5_000;
const TIMEOUT_MS = 600_000;

it.each<readonly [string, (home: string) => Promise<CopyTarget>]>([
  ["a folder", async (home) => folderTarget(join(home, "copies"))],
  ["a bucket of S3", () => startBucket()],
])(
  "a database of SQLite that is copied to %s is restored after a loss of the machine, to the end or to a moment",
  async (_, targetIn) => {
    const elsewhere = makeHome();
    onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }));
    const deployment = await startDeployment({ replicas: 1, databaseUrl: undefined, redisUrl: undefined });
    onTestFinished(() => deployment.close());
    deployment.upstream.script(MODEL, [says("one two three")]);
    const { secret: key } = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "copied" });
    const dataDir = join(deployment.products[0]!.home, "data");
    const file = join(dataDir, "parley.db");
    const litestream = await openLitestream(file, { folder: elsewhere, target: await targetIn(elsewhere) });
    litestream.replicate();
    await delay(2_000);
    const load = async (): Promise<readonly string[]> => {
      const running = startLoad({ callers: CALLERS, key, pick: () => deployment.products[0]!.url });
      await delay(LOAD_MS);
      await running.stop();
      expect(running.failures).toEqual([]);
      return running.ended;
    };

    const beginning = await load();
    // SIGKILL of the server alone: the copy goes on with the next one.
    await deployment.restart(0);
    // The copying program does not run meanwhile.
    await litestream.kill();
    const first = [...beginning, ...(await load())];
    litestream.replicate();
    await delay(BOUND_MS);
    const moment = Date.now();
    await delay(1_000);
    const second = await load();
    await delay(BOUND_MS);
    // The last calls before the machine is lost.
    const last = startLoad({ callers: CALLERS, key, pick: () => deployment.products[0]!.url });
    await delay(LOAD_MS);
    await Promise.all([litestream.kill(), deployment.products[0]!.stop()]);
    await last.stop();
    await deployment.store.close();
    rmSync(dataDir, { recursive: true });

    const restore = async (name: string, atMs?: number): Promise<readonly string[]> => {
      const restored = join(elsewhere, name);
      mkdirSync(restored, { mode: 0o700 });
      await litestream.restore(join(restored, "parley.db"), atMs);
      chmodSync(join(restored, "parley.db"), 0o600);
      return idsIn(restored, undefined);
    };
    const atEnd = await restore("latest");
    expect(new Set(atEnd).size).toBe(atEnd.length);
    expect([...first, ...second].filter((id) => !atEnd.includes(id))).toEqual([]);
    const lost = last.ended.filter((id) => !atEnd.includes(id)).length;
    console.log(`${lost} of the last ${last.ended.length} completions are not in the copy; ${atEnd.length} are`);
    // All that was there, and nothing of later.
    expect((await restore("moment", moment)).toSorted()).toEqual(first.toSorted());

    const store = await openStore({ dataDir: join(elsewhere, "latest"), databaseUrl: undefined });
    expect(await store.findDamage()).toEqual([]);
    await store.close();
    mkdirSync(dataDir, { mode: 0o700 });
    await litestream.restore(file);
    chmodSync(file, 0o600);
    await deployment.restart(0);
    const again = await load();
    expect(again.length).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

it("a copy by parley backup is restored as the page says", async () => {
  const home = makeHome();
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const run = async (...argv: readonly string[]) => {
    const { output, ending } = runProduct(argv, { home });
    expect(await ending).toEqual({ code: 0, signal: null });
    return output;
  };
  await run("keys", "create", "--name", "before");
  await run("backup", join(home, "copy.db"));
  await run("keys", "create", "--name", "after");
  for (const name of ["parley.db", "parley.db-wal", "parley.db-shm"]) rmSync(join(home, "data", name), { force: true });
  renameSync(join(home, "copy.db"), join(home, "data/parley.db"));
  const { stdout } = await run("keys", "list");
  expect(stdout).toContain("before");
  expect(stdout).not.toContain("after");
});
