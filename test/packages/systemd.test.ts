import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fileSchema } from "../../src/config/schema.ts";
import { need, root, run, tryRun } from "./tools.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-systemd-"));
const unit = join(folder, "parley.service");
const text = readFileSync(join(root, "deploy/systemd/parley.service"), "utf8");
beforeAll(() => {
  need("systemd-analyze", "apt-get install systemd");
  // It checks that the program exists.
  writeFileSync(unit, text.replace("ExecStart=/usr/local/bin/parley", `ExecStart=${process.execPath}`));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("deploy/systemd/parley.service", () => {
  it("is a unit without mistakes", () => {
    const { status, stderr, stdout } = tryRun("systemd-analyze", ["verify", unit]);
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: "" });
  });

  it("exposes little, by systemd's own measure of 0 to 10", () => {
    const report = run("systemd-analyze", ["security", "--offline=true", "--threshold=20", "--no-pager", unit]);
    expect(report).toMatch(/Overall exposure level for parley\.service: 1\.\d OK/);
  });

  it("writes no core dump, which would contain credentials", () => {
    expect(text).toMatch(/^LimitCORE=0$/m);
  });

  it("waits longer than calls in flight may take to finish", () => {
    const { delay_ms: delayMs, drain_ms: drainMs } = fileSchema.parse({}).shutdown;
    const stopSeconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(text)?.[1]);
    expect(stopSeconds).toBeGreaterThanOrEqual((delayMs + drainMs) / 1000 + 30);
  });
});
