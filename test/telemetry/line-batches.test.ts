import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { LineBatches } from "../../src/telemetry/line-batches.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-lines-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("lines of a log", () => {
  it("are all written in order, many lines or a single one", async () => {
    const file = join(folder, "many");
    const descriptor = openSync(file, "w");
    const lines = new LineBatches(descriptor);
    const written = Array.from({ length: 10_000 }, (_, index) => `line ${index} ${"é".repeat(index % 50)}\n`);
    for (const line of written) lines.write(line);
    await expect.poll(() => readFileSync(file, "utf8").length).toBe(written.join("").length);
    lines.write("the last one\n");
    await expect.poll(() => readFileSync(file, "utf8")).toBe(`${written.join("")}the last one\n`);
    closeSync(descriptor);
  });

  it("are written at the end of the process", () => {
    const module = join(import.meta.dirname, "../../src/telemetry/logger.ts");
    const program = `import { createLogger } from ${JSON.stringify(module)};
      const log = createLogger("info");
      log.info({ key: "sk_parley_x" }, "first");
      log.line("info", { n: 2 }, "second");
      log.line("error", { n: 3 }, "third");
      log.warn("fourth");`;
    const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
    const lines = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toMatchObject([
      { level: "info", key: "[redacted]", msg: "first" },
      { level: "info", n: 2, msg: "second" },
      { level: "error", n: 3, msg: "third" },
      { level: "warn", msg: "fourth" },
    ]);
    for (const { time } of lines) expect(Date.parse(String(time))).toBeGreaterThan(Date.now() - 60_000);
  });

  it("of several workers carry the worker's number and stay whole in a shared pipe", () => {
    const module = join(import.meta.dirname, "../../src/telemetry/logger.ts");
    const program = `import { createLogger } from ${JSON.stringify(module)};
      const log = createLogger("info", Number(process.argv[1]));
      // Less than the pipe's capacity in total: an exiting process does not wait for a reader.
      for (let n = 0; n < 100; n++) log.line("info", { n, text: "x".repeat(n) }, "a line");`;
    const script = '{ "$0" --input-type=module -e "$1" 1 & "$0" --input-type=module -e "$1" 2 & wait; } 2>&1 | cat';
    const { stdout } = spawnSync("sh", ["-c", script, process.execPath, program], { encoding: "utf8" });
    const lines = stdout.trim().split("\n");
    const workers = lines.map((line) => (JSON.parse(line) as { worker: number }).worker);
    expect(workers.filter((worker) => worker === 1)).toHaveLength(100);
    expect(workers.filter((worker) => worker === 2)).toHaveLength(100);
  });

  it("are dropped when their reader is gone, without stopping the process", async () => {
    const module = join(import.meta.dirname, "../../src/telemetry/logger.ts");
    const program = `import { createLogger } from ${JSON.stringify(module)};
      const log = createLogger("info");
      process.stdin.once("data", () => {
        for (let n = 0; n < 20_000; n++) log.line("info", { n }, "a line without a reader");
        setTimeout(() => { console.log("still here"); process.exit(); }, 300);
      });`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    child.stderr.destroy();
    child.stdin.write("go");
    const [status] = await once(child, "exit");
    expect([status, said]).toEqual([0, "still here\n"]);
  });

  it("do not delay the exit of the process when their reader is gone", async () => {
    const module = join(import.meta.dirname, "../../src/telemetry/logger.ts");
    const program = `import { createLogger } from ${JSON.stringify(module)};
      const log = createLogger("info");
      process.stdin.once("data", () => {
        log.line("info", {}, "a line without a reader");
        process.exit(3);
      });`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
    child.stderr.destroy();
    child.stdin.write("go");
    const limit = setTimeout(() => child.kill("SIGKILL"), 10_000);
    expect(await once(child, "exit")).toEqual([3, null]);
    clearTimeout(limit);
  });
});
