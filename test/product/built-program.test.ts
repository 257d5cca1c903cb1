import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHome, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

const root = join(import.meta.dirname, "../..");
const COPIED = ["src", "web/paths.ts", "gen", "scripts", "package.json", "package-lock.json"];

let checkout: string;
let home: string;

/** A checkout in which nothing has been built. */
beforeAll(() => {
  checkout = mkdtempSync(join(tmpdir(), "parley-checkout-"));
  home = makeHome();
  for (const path of COPIED) cpSync(join(root, path), join(checkout, path), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
});
afterAll(() => {
  for (const folder of [checkout, home]) rmSync(folder, { recursive: true, force: true });
});

/** `npx parley` with these arguments, without what an installation is looked at for. */
function parley(...args: string[]): { status: number | null; stdout: string; stderr: string; built: boolean } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(checkout, "scripts/parley.mjs"), ...args], {
    cwd: home,
    env: { PATH: process.env["PATH"], PARLEY_DATA_DIR: join(home, "data") },
    encoding: "utf8",
  });
  return { status, stdout, stderr, built: stderr.includes("Building Parley") };
}

function edit(path: string, change: (text: string) => string): void {
  const file = join(checkout, path);
  const before = readFileSync(file, "utf8");
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(file, after);
}

describe("the built program", () => {
  it("is built once, and opens the database in its thread", () => {
    expect(parley("keys", "create", "--name", "a")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^sk_parley_\w+\n$/),
      built: true,
    });
    expect(parley("keys", "list")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("sk_parley"),
      built: false,
    });
  });

  it("needs no packages, and installs none, once it is built", () => {
    rmSync(join(checkout, "node_modules"));
    try {
      const { status, stderr } = parley("keys", "list");
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(existsSync(join(checkout, "node_modules"))).toBe(false);
    } finally {
      symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
    }
  });

  it("is ASCII, which V8 stores in one byte per character", () => {
    const folder = join(checkout, "dist/program");
    const files = readdirSync(folder).filter((name) => name.endsWith(".cjs"));
    expect(files).toContain("main.cjs");
    expect(files.filter((name) => /[^\0-\x7f]/.test(readFileSync(join(folder, name), "utf8")))).toEqual([]);
  });

  it("starts without the packages of clouds, which a provider there loads", () => {
    const folder = join(checkout, "dist/program");
    const read = (name: string): string => readFileSync(join(folder, name), "utf8");
    const started = new Set(["main.cjs"]);
    // The set grows while it is walked. What is loaded later is required within a function.
    for (const name of started)
      for (const [, next] of read(name).matchAll(/^(?:\w.* = )?require\("\.\/([\w-]+\.cjs)"\);$/gm)) started.add(next!);
    const ofAws = /AWS4-HMAC-SHA256|accommodate event stream message|Could not load credentials from any providers/;
    const holding = readdirSync(folder).filter((name) => name.endsWith(".cjs") && ofAws.test(read(name)));
    expect(started.size).toBeGreaterThan(3);
    expect(holding.length).toBeGreaterThan(0);
    expect(holding.filter((name) => started.has(name))).toEqual([]);
  });

  it("serves completions, pages, documents and metrics", async () => {
    mkdirSync(join(checkout, "dist/console"), { recursive: true });
    writeFileSync(join(checkout, "dist/console/index.html"), "<title>a page</title>");
    const product = await startProduct({ program: join(checkout, "dist/program/main.cjs") });
    try {
      const answer = await postChat(product.url, product.firstKey, {
        model: "alpha-haiku-4.5",
        messages: [{ role: "user", content: "Hello" }],
      });
      expect(await answer.json()).toMatchObject({ object: "chat.completion" });
      const read = async (url: string): Promise<string> => (await fetch(url)).text();
      expect(await read(`${product.url}/`)).toContain("a page");
      expect(JSON.parse(await read(`${product.url}/openapi.json`))).toHaveProperty("openapi");
      expect(await read(`${product.operationsUrl}/metrics`)).toContain('parley_completions_total{entrance="http"');
      product.signal("SIGTERM");
      expect(await product.ending).toEqual({ code: 0, signal: null });
    } finally {
      await product.stop();
    }
  });

  it("serves with several workers, which are programs beside it", async () => {
    const program = join(checkout, "dist/program/main.cjs");
    const product = await startProduct({ program, config: { workers: 2 } });
    try {
      const headers = { authorization: `Bearer ${product.firstKey}` };
      expect((await fetch(`${product.url}/v1/models`, { headers })).status).toBe(200);
      const readiness = (await (await fetch(`${product.operationsUrl}/readyz`)).json()) as object;
      expect(readiness).toMatchObject({ ready: true, workers: { configured: 2, ready: 2 } });
    } finally {
      await product.stop();
    }
  });

  it("is built again when a source has changed", () => {
    edit("src/cli/cli.ts", (text) => text.replace("print the version", "print a changed version"));
    expect(parley("help")).toMatchObject({ stdout: expect.stringContaining("a changed version"), built: true });
    expect(parley("help")).toMatchObject({ stdout: expect.stringContaining("a changed version"), built: false });
  });

  it("is never stale: when the build fails the sources run, with a message", () => {
    edit("src/cli/cli.ts", (text) => text.replace("print a changed version", "print the newest version"));
    edit("scripts/build-program.mjs", () => "process.exitCode = 1;");
    const { status, stdout, stderr } = parley("help");
    expect(status).toBe(0);
    expect(stdout).toContain("print the newest version");
    expect(stderr).toContain("Parley could not be built; it runs from its sources");
  });
});
