import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { startProduct } from "../support/product.ts";

const root = join(import.meta.dirname, "../..");
/** What an operator starts, and what the launcher starts. */
const PROGRAMS = { "the launcher": "scripts/parley.mjs", "the program without its flags": "src/main.ts" };

/** Lets the launcher build what it runs, which may take longer than a greeting is waited for: then it fails. */
beforeAll(() => {
  spawnSync(process.execPath, [join(root, "scripts/parley.mjs"), "serve", "--config", "/nonexistent/parley.yaml"]);
});

describe.runIf(process.platform === "linux")("SIGUSR1", () => {
  it.each(Object.entries(PROGRAMS))("opens no inspector in any process of %s, and ends none", async (_, program) => {
    const product = await startProduct({ program: join(root, program), config: { workers: 2 } });
    try {
      const processes = processTree(product.pid);
      expect(processes.length).toBeGreaterThanOrEqual(3);
      const before = processes.flatMap(listeners);
      for (const pid of processes) process.kill(pid, "SIGUSR1");
      // Each worker answers some of these after the signal, which an inspector does not wait for.
      for (let round = 0; round < 50; round += 1) {
        const answer = await fetch(`${product.url}/healthz`, { headers: { connection: "close" } });
        expect(answer.status).toBe(200);
      }
      expect(processTree(product.pid)).toEqual(processes);
      expect(processes.flatMap(listeners)).toEqual(before);
      expect(product.output.stderr).not.toMatch(/debugger|inspector/i);
    } finally {
      // Killing the launcher would leave the others behind.
      product.signal("SIGTERM");
      await product.ending;
      await product.stop();
    }
  });
});

/** The process and all below it. */
function processTree(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
  return [pid, ...children.toSorted((a, b) => a - b).flatMap(processTree)];
}

/** Addresses on which the process accepts TCP connections, as the kernel writes them. */
function listeners(pid: number): string[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    ),
  );
  return readFileSync(`/proc/${pid}/net/tcp`, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === "0A" && sockets.has(inode ?? ""))
    .map(([, address]) => `${pid} ${address}`);
}

/** What a descriptor is; empty when it has been closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
