import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const script = join(root, "scripts/complete-lock.mjs");
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "parley-lock-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Packages = Readonly<Record<string, object>>;

const integrity = `sha512-${"A".repeat(86)}==`;
const published = { cpu: ["x64"], libc: ["musl"], license: "MIT", os: ["linux"], engines: { node: ">=20" } };
const tool = { version: "1.2.3", integrity, dev: true, optionalDependencies: { "@tool/linux-x64-musl": "1.2.3" } };
const platform = { version: "1.2.3", integrity, dev: true, optional: true, ...published };

/** What the registry of these tests has, which npm asks as it asks any other. */
const registry: Readonly<Record<string, object>> = {
  "@tool/linux-x64-musl": { ...published, dist: { integrity, tarball: "http://127.0.0.1/x.tgz" } },
  bare: { dist: { integrity, tarball: "http://127.0.0.1/x.tgz" } },
  unhashed: { dist: { shasum: "da39a3ee5e6b4b0d3255bfef95601890afd80709", tarball: "http://127.0.0.1/x.tgz" } },
};
let server: Server;
beforeAll(async () => {
  server = createServer((request, response) => {
    const name = decodeURIComponent(request.url!.slice(1));
    const manifest = registry[name];
    response.writeHead(manifest === undefined ? 404 : 200, { "content-type": "application/json" });
    const versions = { "1.2.3": { name, version: "1.2.3", ...manifest } };
    response.end(JSON.stringify(manifest ? { name, "dist-tags": { latest: "1.2.3" }, versions } : {}));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => server.close());

describe("the check of the lock file", () => {
  it("accepts a lock in which every platform has its packages", async () => {
    const lock = writeLock({ "node_modules/tool": tool, "node_modules/@tool/linux-x64-musl": platform });
    expect(await run("--check", lock)).toEqual({ status: 0, errors: "" });
  });

  it("finds a package of another platform that is not locked", async () => {
    const { status, errors } = await run("--check", writeLock({ "node_modules/tool": tool }));
    expect(status).toBe(1);
    expect(errors).toContain("no entry for node_modules/@tool/linux-x64-musl");
  });

  it.each([
    ["no hash", {}],
    ["a hash that can be forged", { integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" }],
  ])("finds a package with %s", async (_, hash) => {
    const { status, errors } = await run("--check", writeLock({ "node_modules/x": { version: "1.0.0", ...hash } }));
    expect(status).toBe(1);
    expect(errors).toContain("node_modules/x has no integrity hash");
  });

  it("asks for no hash of what is bundled in a package with one", async () => {
    const bundled = { version: "1.0.0", inBundle: true };
    const lock = writeLock({ "node_modules/tool": platform, "node_modules/tool/node_modules/x": bundled });
    expect(await run("--check", lock)).toEqual({ status: 0, errors: "" });
  });

  it("finds an address of a registry", async () => {
    const entry = { version: "1.0.0", integrity, resolved: "https://registry.example/x.tgz" };
    const { status, errors } = await run("--check", writeLock({ "node_modules/x": entry }));
    expect(status).toBe(1);
    expect(errors).toContain("node_modules/x names the address it came from");
  });

  it("leaves the file alone", async () => {
    const lock = writeLock({ "node_modules/tool": tool });
    const before = readFileSync(lock, "utf8");
    await run("--check", lock);
    expect(readFileSync(lock, "utf8")).toBe(before);
  });

  it("finds nothing in the project's own lock", async () => {
    expect(await run("--check", join(root, "package-lock.json"))).toEqual({ status: 0, errors: "" });
  });
});

describe("completing the lock file", () => {
  it("adds the missing packages with what the registry says of them", async () => {
    const lock = writeLock({ "node_modules/tool": tool });
    expect(await run(lock)).toEqual({ status: 0, errors: "" });
    expect(readLock(lock)).toEqual({ "node_modules/tool": tool, "node_modules/@tool/linux-x64-musl": platform });
    expect((await run("--check", lock)).status).toBe(0);
  });

  it("adds a missing hash, also of a package for every platform", async () => {
    const lock = writeLock({ "node_modules/bare": { version: "1.2.3", dev: true } });
    expect(await run(lock)).toEqual({ status: 0, errors: "" });
    expect(readLock(lock)).toEqual({ "node_modules/bare": { version: "1.2.3", integrity, dev: true } });
  });

  it.each([
    ["is not published", "absent", "1.2.3"],
    ["is not published in that version", "bare", "9.9.9"],
    ["is published without a SHA-512 hash", "unhashed", "1.2.3"],
  ])("fails and changes nothing when a package %s", async (_, name, version) => {
    const lock = writeLock({ "node_modules/bare": { version: "1.2.3" }, [`node_modules/${name}x`]: { name, version } });
    const before = readFileSync(lock, "utf8");
    const { status, errors } = await run(lock);
    expect(status).toBe(1);
    expect(errors).toContain(`the registry has no SHA-512 hash of ${name}@${version}: lock a version`);
    expect(readFileSync(lock, "utf8")).toBe(before);
  });

  it("takes out the addresses of registries", async () => {
    const entry = { version: "1.0.0", integrity, resolved: "https://registry.example/x.tgz" };
    const lock = writeLock({ "node_modules/x": entry });
    expect((await run(lock)).status).toBe(0);
    expect(readLock(lock)).toEqual({ "node_modules/x": { version: "1.0.0", integrity } });
  });

  it("sees a package that is locked inside the one that needs it", async () => {
    const lock = writeLock({
      "node_modules/tool": tool,
      "node_modules/tool/node_modules/@tool/linux-x64-musl": platform,
    });
    expect((await run("--check", lock)).status).toBe(0);
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

/** Runs the script with the registry of these tests and an empty cache. */
async function run(...args: string[]): Promise<{ status: number; errors: string }> {
  const { port } = server.address() as AddressInfo;
  const env = {
    PATH: process.env["PATH"],
    npm_config_registry: `http://127.0.0.1:${port}/`,
    npm_config_cache: join(folder, "cache"),
    npm_config_userconfig: join(folder, "npmrc"),
  };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [script, ...args], { env, cwd: folder }, (_error, _output, errors) =>
      resolve({ status: child.exitCode ?? -1, errors }),
    );
  });
}
