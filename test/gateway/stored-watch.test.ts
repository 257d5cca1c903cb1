import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parseConfig } from "../../src/config/parse.ts";
import { NOTHING_STORED } from "../../src/config/stored.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStoredWatch } from "../../src/gateway/stored-watch.ts";
import { describeLocation } from "../../src/store/database.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

it.each([null, {}, { version: null, credentials: [] }, { version: { version: 1, document: "" }, credentials: [null] }])(
  "a kept stored configuration of another form, %j, is none",
  async (rows) => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-watch-"));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const text = `data_dir: ${dataDir}\ndatabase: { url: "postgres://parley@127.0.0.1:1/parley" }`;
    const config = parseConfig({ file: "parley.yaml", text, env: {} });
    const known = { database: describeLocation(config), rows };
    writeFileSync(join(dataDir, "stored-configuration.json"), JSON.stringify(known));
    const watch = await openStoredWatch(config, { clock: systemClock, log: createLogger("silent") });
    expect(watch.readBy(config)).toEqual(NOTHING_STORED);
    await watch.close();
  },
);
