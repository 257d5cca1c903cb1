import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
let folder: string;

/** A checkout with the real scripts, and a program that says when it holds the lock and when it releases it. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parley-lock-"));
  for (const path of ["scripts", "package.json"]) cpSync(join(root, path), join(folder, path), { recursive: true });
  writeFileSync(
    join(folder, "change.mjs"),
    `import { appendFileSync } from "node:fs";
     import { setTimeout } from "node:timers/promises";
     import { withInstallationLock } from "./scripts/installation.mjs";
     await withInstallationLock(async () => {
       appendFileSync("log", "begin ");
       await setTimeout(300);
       appendFileSync("log", "end ");
     });`,
  );
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function change(): Promise<unknown> {
  const [status] = (await once(spawn(process.execPath, ["change.mjs"], { cwd: folder }), "exit")) as unknown[];
  return status;
}

it("an installation or a build waits for those of other processes", async () => {
  expect(await Promise.all([change(), change(), change()])).toEqual([0, 0, 0]);
  expect(readFileSync(join(folder, "log"), "utf8")).toBe("begin end begin end begin end ");
  expect(existsSync(join(folder, ".bootstrap.lock"))).toBe(false);
});

it("an installation does not wait for a process that has ended", async () => {
  const { pid } = spawnSync(process.execPath, ["-e", ""]);
  writeFileSync(join(folder, ".bootstrap.lock"), String(pid));
  expect(await change()).toBe(0);
});

it("an installation leaves the packages of another folder alone, to which node_modules is a link", () => {
  const other = join(folder, "other");
  mkdirSync(other);
  writeFileSync(join(other, "package"), "");
  symlinkSync(other, join(folder, "node_modules"));
  writeFileSync(
    join(folder, "install.mjs"),
    `import { ensureInstalled } from "./scripts/installation.mjs";
     await ensureInstalled();`,
  );
  // Without npm in the path it could not install anything.
  const { status, stderr } = spawnSync(process.execPath, ["install.mjs"], { cwd: folder, env: { PATH: "" } });
  expect(status).toBe(1);
  expect(stderr.toString()).toMatch(/node_modules is a link, .* remove the link/s);
  expect(existsSync(join(other, "package"))).toBe(true);
});
