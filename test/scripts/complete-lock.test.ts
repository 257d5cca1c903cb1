import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const script = join(import.meta.dirname, "../../scripts/complete-lock.mjs");
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "parley-lock-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Packages = Readonly<Record<string, object>>;

const tool = { version: "1.2.3", dev: true, optionalDependencies: { "@tool/linux-x64-musl": "1.2.3" } };
const platform = { version: "1.2.3", cpu: ["x64"], dev: true, libc: ["musl"], optional: true, os: ["linux"] };

describe("the check of the lock file", () => {
  it("accepts a lock in which every platform has its packages", () => {
    const lock = writeLock({ "node_modules/tool": tool, "node_modules/@tool/linux-x64-musl": platform });
    expect(run("--check", lock)).toEqual({ status: 0, errors: "" });
  });

  it("finds a package of another platform that is not locked", () => {
    const { status, errors } = run("--check", writeLock({ "node_modules/tool": tool }));
    expect(status).toBe(1);
    expect(errors).toContain("no entry for node_modules/@tool/linux-x64-musl");
  });

  it("finds an address of a registry", () => {
    const entry = { version: "1.0.0", resolved: "https://registry.example/x.tgz" };
    const { status, errors } = run("--check", writeLock({ "node_modules/x": entry }));
    expect(status).toBe(1);
    expect(errors).toContain("node_modules/x names the address it came from");
  });

  it("leaves the file alone", () => {
    const lock = writeLock({ "node_modules/tool": tool });
    const before = readFileSync(lock, "utf8");
    run("--check", lock);
    expect(readFileSync(lock, "utf8")).toBe(before);
  });
});

describe("completing the lock file", () => {
  it("adds the missing packages with their version and platform", () => {
    const lock = writeLock({ "node_modules/tool": tool });
    expect(run(lock).status).toBe(0);
    expect(readLock(lock)).toEqual({ "node_modules/tool": tool, "node_modules/@tool/linux-x64-musl": platform });
    expect(run("--check", lock).status).toBe(0);
  });

  it("takes out the addresses of registries", () => {
    const lock = writeLock({ "node_modules/x": { version: "1.0.0", resolved: "https://registry.example/x.tgz" } });
    expect(run(lock).status).toBe(0);
    expect(readLock(lock)).toEqual({ "node_modules/x": { version: "1.0.0" } });
  });

  it("sees a package that is locked inside the one that needs it", () => {
    const lock = writeLock({
      "node_modules/tool": tool,
      "node_modules/tool/node_modules/@tool/linux-x64-musl": platform,
    });
    expect(run("--check", lock).status).toBe(0);
  });

  it("knows that WebAssembly is for every system", () => {
    const wasm = { version: "1.2.3", dev: true, optionalDependencies: { "@tool/wasm32-wasi": "1.2.3" } };
    const lock = writeLock({ "node_modules/tool": wasm });
    expect(run(lock).status).toBe(0);
    expect(readLock(lock)["node_modules/@tool/wasm32-wasi"]).toEqual({
      version: "1.2.3",
      cpu: ["wasm32"],
      dev: true,
      optional: true,
    });
  });

  it("does not guess the platform of a package whose name has none", () => {
    const odd = { version: "1.0.0", optionalDependencies: { extra: "^2.0.0" } };
    const { status, errors } = run(writeLock({ "node_modules/odd": odd }));
    expect(status).toBe(1);
    expect(errors).toContain("extra is not in the lock and names no platform");
  });
});

function writeLock(packages: Packages): string {
  const path = join(folder, "package-lock.json");
  writeFileSync(path, JSON.stringify({ lockfileVersion: 3, packages }));
  return path;
}

function readLock(path: string): Packages {
  return (JSON.parse(readFileSync(path, "utf8")) as { packages: Packages }).packages;
}

function run(...args: string[]): { status: number | null; errors: string } {
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: "utf8" });
  return { status, errors: stderr };
}
