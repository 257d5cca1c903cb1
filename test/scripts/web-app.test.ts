import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
let folder: string;

/** Folders and files that the dashboard is built of. */
const FOLDERS = [
  "scripts/reference",
  "node_modules",
  "web",
  "proto/parley/v1",
  "gen/parley/console",
  "gen/parley/v1",
  "gen/google/rpc",
];
const FILES: Readonly<Record<string, string>> = {
  "src/main.ts": "console.log('serving');",
  "web/main.tsx": "",
  "src/inbound/failure-advice.ts": "",
  "docs/clients.md": "",
  "proto/parley/v1/completion.proto": "",
  "scripts/reference/contract.ts":
    "export const buildContract = async () => ({ files: new Map([['parley/v1/a.proto', Buffer.from('a')]]) });",
};

/** A checkout with the real scripts, a program that only says that it serves, and no dependency at all. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "parley-web-app-"));
  for (const path of [...FOLDERS, ...Object.keys(FILES).map(dirname)]) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  for (const name of readdirSync(join(root, "scripts")).filter((each) => each.endsWith(".mjs"))) {
    copyFileSync(join(root, "scripts", name), join(folder, "scripts", name));
  }
  copyFileSync(join(root, "package.json"), join(folder, "package.json"));
  for (const path of ["package-lock.json", "node_modules/.package-lock.json"]) {
    writeFileSync(join(folder, path), JSON.stringify({ packages: {} }));
  }
  for (const [path, text] of Object.entries(FILES)) writeFileSync(join(folder, path), text);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A bundler that writes one page. */
function installBundler(): void {
  const vite = join(folder, "node_modules/vite");
  mkdirSync(vite);
  writeFileSync(join(vite, "package.json"), JSON.stringify({ name: "vite", type: "module", main: "vite.js" }));
  writeFileSync(
    join(vite, "vite.js"),
    `import { writeFileSync } from "node:fs";
     export const build = async ({ build: { outDir } }) => {
       writeFileSync(outDir + "/index.html", "a page");
       return { output: [] };
     };`,
  );
}

/** `npm start`, or another command of Parley. */
function start(...args: string[]): { status: number | null; stdout: string; built: boolean; stderr: string } {
  const run = ["scripts/run.mjs", "src/main.ts", ...args];
  // The tests' own compile cache would take precedence over the program's.
  const env = { ...process.env, NODE_COMPILE_CACHE: undefined };
  const { status, stdout, stderr } = spawnSync(process.execPath, run, { cwd: folder, encoding: "utf8", env });
  return { status, stdout, stderr, built: stderr.includes("Building the dashboard") };
}

describe("npm start", () => {
  it("builds the dashboard once, and again when its sources have changed", () => {
    installBundler();
    expect(start()).toMatchObject({ status: 0, stdout: "serving\n", built: true });
    expect(readFileSync(join(folder, "dist/console/index.html"), "utf8")).toBe("a page");
    expect(start("serve")).toMatchObject({ stdout: "serving\n", built: false });
    appendFileSync(join(folder, "web/main.tsx"), "// changed");
    expect(start("--config", "parley.yaml")).toMatchObject({ stdout: "serving\n", built: true });
    expect(start()).toMatchObject({ built: false });
    // Nothing half-done is left behind; Node keeps what it has compiled beside the program.
    expect(readdirSync(join(folder, "dist"))).toEqual(["console", "program"]);
  });

  it("builds the contract's files too, and again when a proto has changed", () => {
    installBundler();
    start();
    expect(readFileSync(join(folder, "dist/console/proto/parley/v1/a.proto"), "utf8")).toBe("a");
    appendFileSync(join(folder, "proto/parley/v1/completion.proto"), "// changed");
    expect(start()).toMatchObject({ stdout: "serving\n", built: true });
    expect(start()).toMatchObject({ built: false });
  });

  it("serves without the dashboard when it cannot be built, and says why", () => {
    const { status, stdout, stderr } = start();
    expect({ status, stdout }).toEqual({ status: 0, stdout: "serving\n" });
    expect(stderr).toContain("vite");
    expect(stderr).toContain("everything else works without it");
  });

  it("serves without the dashboard when its sources are not even there", () => {
    rmSync(join(folder, "gen"), { recursive: true });
    const { status, stdout, stderr } = start();
    expect({ status, stdout }).toEqual({ status: 0, stdout: "serving\n" });
    expect(stderr).toContain("everything else works without it");
  });

  it("leaves the dashboard alone for other commands", () => {
    expect(start("keys", "list")).toMatchObject({ status: 0, built: false });
    expect(start("--version")).toMatchObject({ status: 0, built: false });
  });
});
