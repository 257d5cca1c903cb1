import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { UNREAD } from "../../src/config/stored.ts";
import { openStoredWatch } from "../../src/gateway/stored-watch.ts";
import { describeLocation } from "../../src/store/database.ts";
import { openStore } from "../../src/store/store.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";

const log = createLogger("silent");

function makeConfig(env: Record<string, string> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-watch-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  return loadConfig({ env: { PARLEY_DATA_DIR: dataDir, ...env } });
}

const version = (document: string) => ({ at_ms: 0, actor_id: null, comment: "", document });

it("a version that could not be put in force is tried again until it is", async () => {
  const config = makeConfig();
  const store = await openStore(config);
  const clock = new FakeClock();
  const watch = await openStoredWatch(config, { clock, log });
  onTestFinished(async () => {
    await watch.close();
    await store.close();
  });
  expect([watch.latest(), watch.readBy(config)]).toMatchObject([0, { version: 0 }]);
  await store.configuration.insert({ expected: 0, version: version("aliases: {}"), credentials: [], removed: [] });
  const answers = [false, false, true];
  const tried: (number | undefined)[] = [];
  watch.start(async () => {
    tried.push(watch.readBy(config).version);
    return answers.shift() ?? true;
  });
  for (const count of [1, 2, 3])
    await expect
      .poll(() => {
        clock.advance(1_000);
        return tried.length;
      })
      .toBe(count);
  expect(watch.latest()).toBe(1);
  // The applied version is not applied again.
  await store.configuration.insert({ expected: 1, version: version(""), credentials: [], removed: [] });
  await expect
    .poll(() => {
      clock.advance(1_000);
      return tried;
    })
    .toEqual([1, 1, 1, 2]);
});

it("a database that does not answer is not one without a stored configuration", async () => {
  const config = makeConfig({ PARLEY_DATABASE_URL: "postgres://parley@127.0.0.1:1/parley" });
  const watch = await openStoredWatch(config, { clock: new FakeClock(), log });
  onTestFinished(() => watch.close());
  expect([watch.latest(), watch.readBy(config)]).toEqual([undefined, UNREAD]);
});

it("a database from before the stored configuration has none", async () => {
  const config = makeConfig();
  const store = await openStore(config);
  await store.close();
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(join(config.dataDir, "parley.db"));
  database.exec("drop table configuration_versions");
  database.close();
  const watch = await openStoredWatch(config, { clock: new FakeClock(), log });
  onTestFinished(() => watch.close());
  expect(watch.readBy(config).version).toBe(0);
});
it.each([null, {}, { version: null, credentials: [] }, { version: { version: 1, document: "" }, credentials: [null] }])(
  "a kept stored configuration of another form, %j, is none",
  async (rows) => {
    const config = makeConfig({ PARLEY_DATABASE_URL: "postgres://parley@127.0.0.1:1/parley" });
    const known = { database: describeLocation(config), rows };
    writeFileSync(join(config.dataDir, "stored-configuration.json"), JSON.stringify(known));
    const watch = await openStoredWatch(config, { clock: new FakeClock(), log });
    onTestFinished(() => watch.close());
    expect(watch.readBy(config)).toEqual(UNREAD);
  },
);
