import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canBuildExecutable } from "../../scripts/build-executable.mjs";
import { sha256 } from "../../scripts/release-facts.mjs";
import { makeHome, runProduct, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

const root = join(import.meta.dirname, "../..");
interface Manifest {
  readonly version: string;
  readonly devDependencies: object;
}
const manifest = readJson(join(root, "package.json")) as Manifest;
const archive = join(root, `dist/parley-${manifest.version}.tgz`);
const executable = join(root, `dist/parley-${manifest.version}-linux-${process.arch}`);

const PROVENANCE = `parley-${manifest.version}-${process.platform}-${process.arch}.intoto.json`;
/** All others. */
const ARTIFACTS = [
  basename(archive),
  `parley-${manifest.version}-protos.tar.gz`,
  `parley-${manifest.version}.changelog.md`,
  `parley-${manifest.version}.sbom.cdx.json`,
  ...(canBuildExecutable ? [basename(executable), `${basename(executable)}.sbom.cdx.json`] : []),
];

/** Development dependencies of the project that the built dashboard consists of. */
const OF_DASHBOARD: ReadonlySet<string> = new Set([
  "@base-ui/react",
  "@connectrpc/connect-web",
  "@simplewebauthn/browser",
  "@tanstack/react-query",
  "dompurify",
  "lucide-react",
  "marked",
  "mobx",
  "qr",
  "react",
  "react-dom",
  "redoc",
  "styled-components",
  "uplot",
  "wouter",
]);

let folder: string;
let home: string;
/** Where npm has put the release. */
let installed: string;

/** Nothing of the developer's own, and no registry: what npm would fetch fails. */
const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  npm_config_registry: "http://127.0.0.1:9/",
  npm_config_cache: join(folder, "cache"),
  npm_config_userconfig: join(folder, "npmrc"),
});

beforeAll(() => {
  execFileSync(process.execPath, [join(root, "scripts/run.mjs"), "scripts/release.mjs"], { stdio: "pipe" });
  folder = mkdtempSync(join(tmpdir(), "parley-release-"));
  home = makeHome();
  installed = join(folder, "node_modules/parley");
  // Else npm looks for one in the folders above.
  writeFileSync(join(folder, "package.json"), "{}");
  const options = ["--offline", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
  execFileSync("npm", ["install", ...options, archive], { cwd: folder, env: environment(), stdio: "pipe" });
}, 180_000);
afterAll(() => {
  for (const each of [folder, home]) rmSync(each, { recursive: true, force: true });
});

describe("a release", () => {
  it("is installed without any other package", () => {
    expect(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["parley"]);
    expect(existsSync(join(installed, "node_modules"))).toBe(false);
    const text = readFileSync(join(installed, "package.json"), "utf8");
    expect(text).not.toMatch(/dependencies/i);
  });

  it("serves completions, pages, the contract and metrics, and installs and builds nothing", async () => {
    const program = join(installed, "scripts/parley.mjs");
    const product = await startProduct({ home, program, env: { npm_config_registry: "http://127.0.0.1:9/" } });
    try {
      const created = runProduct(["keys", "create", "--name", "a"], { home, program });
      expect(await created.ending).toEqual({ code: 0, signal: null });
      const answer = await postChat(product.url, created.output.stdout.trim(), {
        model: "beta-3-flash",
        messages: [{ role: "user", content: "Hello" }],
      });
      expect(await answer.json()).toMatchObject({ object: "chat.completion" });
      const read = async (url: string): Promise<string> => (await fetch(url)).text();
      expect(await read(`${product.url}/`)).toContain('<script type="module"');
      expect(await read(`${product.url}/proto/parley/v1/completion.proto`)).toContain("service CompletionService");
      expect(await read(`${product.operationsUrl}/metrics`)).toContain('parley_completions_total{entrance="http"');
    } finally {
      product.signal("SIGTERM");
      expect(await product.ending).toEqual({ code: 0, signal: null });
      await product.stop();
    }
    expect(product.output.stderr).not.toMatch(/Installing|Building|runs from its sources/);
    expect(existsSync(join(installed, "node_modules"))).toBe(false);
  });

  it("lists its packages with their hashes, and no development tool", () => {
    const { components } = readJson(join(installed, "sbom.cdx.json")) as {
      components: readonly { name: string; scope: string; hashes: readonly { alg: string }[] }[];
    };
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["@grpc/grpc-js", "pg", "react", "zod"]));
    expect(components.filter(({ hashes, scope }) => hashes[0]?.alg !== "SHA-512" || scope !== "required")).toEqual([]);
    const { packages } = readJson(join(root, "package-lock.json")) as {
      packages: Readonly<Record<string, { readonly dev?: true }>>;
    };
    // One that the tests use may also be part of another package of the program.
    const isTool = (name: string): boolean => !OF_DASHBOARD.has(name) && packages[`node_modules/${name}`]?.dev === true;
    const tools = new Set(Object.keys(manifest.devDependencies).filter(isTool));
    expect(tools.size).toBeGreaterThan(20);
    expect(names.filter((name) => tools.has(name))).toEqual([]);
    const licenses = readFileSync(join(installed, "THIRD-PARTY-LICENSES.txt"), "utf8");
    expect(names.filter((name) => !licenses.includes(`${name} `))).toEqual([]);
  });

  it("lists what a package of it was bundled from", () => {
    const licenses = readFileSync(join(installed, "THIRD-PARTY-LICENSES.txt"), "utf8");
    // Redoc's file holds them.
    expect(licenses).toMatch(/^redoc [\d.]+: MIT$/m);
    expect(licenses).toMatch(/^marked [\d.]+: MIT$/m);
    expect(licenses).toMatch(/^swagger2openapi [\d.]+: BSD-3-Clause$/m);
    expect(licenses).not.toMatch(/^\S+ [\d.]+: undefined$/m);
  });

  it("has pages without development warnings", () => {
    const assets = join(installed, "dist/console/assets");
    const scripts = readdirSync(assets).filter((name) => name.endsWith(".js"));
    expect(scripts.length).toBeGreaterThan(10);
    for (const name of scripts) expect(readFileSync(join(assets, name), "utf8")).not.toContain("react.dev/link/");
  });

  it("has the hashes of all artifacts in one file, which a key of SSH can sign", () => {
    const dist = join(root, "dist");
    const check = spawnSync("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: dist, encoding: "utf8" });
    expect(check.status).toBe(0);
    expect(check.stdout.split("\n").filter(Boolean).toSorted()).toEqual(
      [...ARTIFACTS, PROVENANCE].map((name) => `${name}: OK`).toSorted(),
    );
    const [key, sums] = [join(folder, "key"), join(folder, "SHA256SUMS")];
    copyFileSync(join(dist, "SHA256SUMS"), sums);
    const run = (args: readonly string[], input?: string) =>
      execFileSync("ssh-keygen", args, { encoding: "utf8", input, stdio: ["pipe", "pipe", "pipe"] });
    run(["-q", "-t", "ed25519", "-N", "", "-f", key]);
    run(["-Y", "sign", "-f", key, "-n", "file", sums]);
    const signers = join(folder, "signers");
    writeFileSync(signers, `releases ${readFileSync(`${key}.pub`, "utf8")}`);
    const verify = ["-Y", "verify", "-f", signers, "-I", "releases", "-n", "file", "-s", `${sums}.sig`];
    expect(run(verify, readFileSync(sums, "utf8"))).toContain('Good "file" signature');
    expect(() => run(verify, `${readFileSync(sums, "utf8")}x`)).toThrow("Signature verification failed");
  });

  it("has a provenance that names every other artifact, the commit, the lock and Node", () => {
    const { subject, predicateType, predicate } = readJson(join(root, "dist", PROVENANCE)) as {
      readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[];
      readonly predicateType: string;
      readonly predicate: { readonly buildDefinition: { readonly resolvedDependencies: readonly object[] } };
    };
    expect(predicateType).toBe("https://slsa.dev/provenance/v1");
    expect(subject.map(({ name }) => name)).toEqual(ARTIFACTS.toSorted());
    expect(subject.filter(({ name, digest }) => digest.sha256 !== hashOf(join(root, "dist", name)))).toEqual([]);
    expect(predicate.buildDefinition.resolvedDependencies).toContainEqual({
      name: "package-lock.json",
      digest: { sha256: hashOf(join(root, "package-lock.json")) },
    });
  });

  it("has the contract's files, as the gateway serves them", () => {
    const protos = join(root, `dist/parley-${manifest.version}-protos.tar.gz`);
    expect(hashOf(protos)).toBe(hashOf(join(installed, "dist/console/proto/parley-protos.tar.gz")));
    expect(execFileSync("tar", ["-tzf", protos], { encoding: "utf8" })).toContain("parley/v1/completion.proto");
  });

  it("is the same, byte for byte, when it is built in another folder", () => {
    const copy = mkdtempSync(join(tmpdir(), "parley-again-"));
    try {
      const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
      const files = execFileSync("git", list, { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
      for (const file of files.filter((each) => existsSync(join(root, each)))) {
        mkdirSync(dirname(join(copy, file)), { recursive: true });
        copyFileSync(join(root, file), join(copy, file));
      }
      // Bundles name the files that they are made of, so a link to the folder would not do.
      const packages = [join(root, "node_modules"), join(copy, "node_modules")];
      if (spawnSync("cp", ["-al", ...packages]).status !== 0) {
        rmSync(join(copy, "node_modules"), { recursive: true, force: true });
        execFileSync("cp", ["-a", ...packages]);
      }
      execFileSync(process.execPath, ["scripts/release.mjs"], { cwd: copy, stdio: "pipe" });
      const hashes = (of: string) => ARTIFACTS.map((name) => `${hashOf(join(of, "dist", name))} ${name}`);
      expect(hashes(copy)).toEqual(hashes(root));
    } finally {
      rmSync(copy, { recursive: true });
    }
  }, 300_000);

  it("refuses a Node that is too old instead of looking for another", () => {
    const file = join(installed, "package.json");
    const before = readFileSync(file, "utf8");
    writeFileSync(file, before.replaceAll(/"node": ">=[\d.]+"/g, '"node": ">=99.0.0"'));
    const { status, stderr } = parley("help");
    writeFileSync(file, before);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `Parley needs Node 99.0.0 or newer, and the installed one is ${process.versions.node}. Install Node from https://nodejs.org and try again.\n`,
    });
  });

  it("reports that it is incomplete instead of building", () => {
    rmSync(join(installed, "dist/program"), { recursive: true });
    const { status, stderr } = parley("help");
    expect(status).toBe(1);
    expect(stderr).toMatch(/dist\/program is missing: unpack the release again\n$/);
  });
});

describe.runIf(canBuildExecutable)("the single executable", () => {
  it("serves completions, pages and the contract with several processes, from a folder with nothing else", async () => {
    const alone = makeHome();
    const program = join(alone, "parley");
    copyFileSync(executable, program);
    const start = () => startProduct({ home: alone, program, config: { workers: 2 } });
    const first = await start();
    const completion = {
      method: "POST",
      headers: { authorization: `Bearer ${first.firstKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "beta-3-flash", messages: [{ role: "user", content: "Hello" }] }),
    };
    let second;
    try {
      const answer = await fetch(`${first.url}/v1/chat/completions`, completion);
      expect(await answer.json()).toMatchObject({ object: "chat.completion" });
      const read = async (path: string): Promise<string> => (await fetch(first.url + path)).text();
      expect(await read("/")).toContain('<script type="module"');
      expect(await read("/proto/parley/v1/completion.proto")).toContain("service CompletionService");
      first.signal("SIGKILL");
      await first.ending;
      second = await start();
      expect(second.output.stdout).toContain("Keys are made with: parley keys create");
      const again = await fetch(`${second.url}/v1/chat/completions`, completion);
      expect(await again.json()).toMatchObject({ object: "chat.completion" });
      second.signal("SIGTERM");
      expect(await second.ending).toEqual({ code: 0, signal: null });
      const usage = runProduct(["usage", "--config", join(alone, "parley.yaml"), "--json"], { home: alone, program });
      await usage.ending;
      expect(usage.output.stdout).toMatch(/"completions": 2,/);
    } finally {
      await first.stop();
      await second?.stop();
      rmSync(alone, { recursive: true });
    }
  });

  it("gives its process the variables that an installation has, before those of the operator", async () => {
    const child = spawn(executable, ["simulate", "--listen", "127.0.0.1:0"], {
      env: { UV_THREADPOOL_SIZE: "7", NODE_OPTIONS: "--max-old-space-size=100" },
    });
    await once(child.stdout, "data");
    const variables = readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0");
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(variables).toEqual(
      expect.arrayContaining([
        "MALLOC_ARENA_MAX=1",
        "UV_THREADPOOL_SIZE=7",
        expect.stringMatching(/^NODE_OPTIONS=--v8-pool-size=[1-4] --max-old-space-size=100$/),
      ]),
    );
  });

  it("prints what is in it, with Node, and the licences", () => {
    const print = (flag: string): string => execFileSync(executable, ["version", flag], { encoding: "utf8", env: {} });
    const { components } = JSON.parse(print("--sbom")) as { components: readonly { name: string; version: string }[] };
    expect(components).toContainEqual(expect.objectContaining({ name: "node", version: process.versions.node }));
    expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(["zod", "react"]));
    expect(print("--licenses")).toMatch(/^Node\.js [\d.]+: MIT/m);
  });
});

function parley(...args: string[]): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, [join(installed, "scripts/parley.mjs"), ...args], {
    cwd: home,
    env: environment(),
    encoding: "utf8",
  });
  return { status, stderr };
}

function hashOf(path: string): string {
  return sha256(readFileSync(path));
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}
