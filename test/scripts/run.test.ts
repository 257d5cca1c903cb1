import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const launcher = join(import.meta.dirname, "../../scripts/run.mjs");
const folder = mkdtempSync(join(tmpdir(), "parley-run-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A program that says which signals it gets and ends by itself half a second after the first one. */
const server = program(
  "server.mjs",
  `for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
     process.on(signal, () => { console.log(signal); setTimeout(() => { console.log("drained"); process.exit(0); }, 500); });
   setInterval(() => {}, 1000);
   console.log("ready");`,
);

/** Starting two Nodes on a busy machine takes a while. */
const patience = { timeout: 8000 };

describe("the launcher of the npm scripts", () => {
  it("passes arguments on and the exit status back", async () => {
    const run = launch(
      program("status.mjs", "console.log(process.argv.slice(2).join()); process.exit(7);"),
      "a",
      "--b",
    );
    expect(await run.ended).toEqual([7, null]);
    expect(run.output()).toBe("a,--b\n");
  });

  it("ends with a failure when the program is killed", async () => {
    const run = launch(program("killed.mjs", 'process.kill(process.pid, "SIGKILL");'));
    expect(await run.ended).toEqual([128 + 9, null]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "passes %s on and waits for the program to drain",
    async (signal) => {
      const run = launch(server);
      await expect.poll(run.output, patience).toBe("ready\n");
      run.child.kill(signal);
      expect(await run.ended).toEqual([0, null]);
      expect(run.output()).toBe(`ready\n${signal}\ndrained\n`);
    },
  );

  it("takes the two signals that one Ctrl-C makes for one", async () => {
    const run = launch(server);
    await expect.poll(run.output, patience).toBe("ready\n");
    run.child.kill("SIGINT");
    await expect.poll(run.output, patience).toBe("ready\nSIGINT\n");
    run.child.kill("SIGINT");
    await run.ended;
    expect(run.output()).toBe("ready\nSIGINT\ndrained\n");
  });

  it("drains the program when npm is killed", async () => {
    // A shell in npm's place. `true` keeps it from becoming the launcher.
    const command = `"${process.execPath}" "${launcher}" "${server}"; true`;
    const run = follow(spawn("sh", ["-c", command], { env: { ...process.env, npm_lifecycle_event: "start" } }));
    await expect.poll(run.output, patience).toBe("ready\n");
    run.child.kill("SIGKILL");
    await expect.poll(run.output, patience).toBe("ready\nSIGTERM\ndrained\n");
  });

  it("gives Parley threads to look up names beside some whose servers are silent, or the operator's number", async () => {
    const print =
      "--import=data:text/javascript,/main\\.[cm]?[jt]s$/.test(process.argv[1])&&console.log(process.env.UV_THREADPOOL_SIZE)";
    const started = ["", "6"].map((UV_THREADPOOL_SIZE) => {
      const { UV_THREADPOOL_SIZE: _, ...own } = process.env;
      const env = { ...own, NODE_OPTIONS: print, ...(UV_THREADPOOL_SIZE && { UV_THREADPOOL_SIZE }) };
      return follow(spawn(process.execPath, [launcher, "src/main.ts", "version"], { env }));
    });
    for (const { ended } of started) expect(await ended).toEqual([0, null]);
    expect(started.map(({ output }) => /^\d+$/m.exec(output())?.[0])).toEqual(["16", "6"]);
  });

  it("says how to use it when there is nothing to run", async () => {
    const run = follow(spawn(process.execPath, [launcher]));
    expect(await run.ended).toEqual([1, null]);
    expect(run.output()).toContain("usage:");
  });
});

function program(name: string, code: string): string {
  const path = join(folder, name);
  writeFileSync(path, code);
  return path;
}

function launch(...args: string[]): Run {
  return follow(spawn(process.execPath, [launcher, ...args]));
}

interface Run {
  readonly child: ChildProcess;
  /** Everything printed so far. */
  readonly output: () => string;
  /** Exit status and signal. */
  readonly ended: Promise<unknown[]>;
}

function follow(child: ReturnType<typeof spawn>): Run {
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (output += text));
  return { child, output: () => output, ended: once(child, "close") };
}
