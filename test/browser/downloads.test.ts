import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const BUF = join(root, "node_modules/@bufbuild/buf/bin/buf");

let product: Product;
let folder: string;

// Among the browser tests, because the downloads are built together with the dashboard.
beforeAll(async () => {
  product = await startProduct();
  folder = mkdtempSync(join(tmpdir(), "parley-client-"));
});
afterAll(async () => {
  await product?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function download(path: string): Promise<Buffer> {
  const response = await fetch(product.url + path);
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

describe("the contract's files", () => {
  it("are public, also for pages of other origins, and read-only", async () => {
    const { headers } = await fetch(`${product.url}/proto/parley/v1/completion.proto`);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "access-control-allow-origin": "*",
      "cache-control": "public, no-cache",
      "x-content-type-options": "nosniff",
    });
    for (const method of ["POST", "DELETE", "OPTIONS"]) {
      const refused = await fetch(`${product.url}/proto/parley.binpb`, { method });
      expect([refused.status, refused.headers.get("allow")]).toEqual([404, "GET"]);
    }
  });

  it("contain only the public contract", async () => {
    for (const path of ["/proto/parley/console/v1/key.proto", "/proto/built.json", "/proto/..%2findex.html"]) {
      expect((await fetch(product.url + path)).status, path).toBe(404);
    }
  });

  it("are a buf module that generates a working client as its README describes", async () => {
    writeFileSync(join(folder, "protos.tar.gz"), await download("/proto/parley-protos.tar.gz"));
    const module = join(folder, "proto");
    mkdirSync(module);
    await run("tar", ["-xzf", "protos.tar.gz", "-C", "proto"], { cwd: folder });
    await run(process.execPath, [BUF, "lint"], { cwd: module });
    const template = readFileSync(join(module, "buf.gen.yaml"), "utf8");
    const [head, ...plugins] = template.split(/^(?= {2}- local: )/m);
    const typescript = plugins.filter((plugin) => plugin.includes("protoc-gen-es"));
    writeFileSync(join(module, "buf.gen.yaml"), [head, ...typescript].join(""));
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const path = [join(root, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
    await run(process.execPath, [BUF, "generate"], { cwd: module, env: { ...process.env, PATH: path } });
    const program = /```ts\n(.*?)```/s.exec(readFileSync(join(module, "README.md"), "utf8"))?.[1] ?? "";
    writeFileSync(join(module, "program.mjs"), program);
    const { stdout } = await run(process.execPath, ["program.mjs"], {
      cwd: module,
      env: { PARLEY_API_KEY: product.firstKey, PARLEY_GRPC: `127.0.0.1:${product.grpcPort}` },
      timeout: 30_000,
    });
    expect(stdout).toContain("Tell me about tides.");
  });

  it("include descriptors with comments", async () => {
    writeFileSync(join(folder, "parley.binpb"), await download("/proto/parley.binpb"));
    const { stdout } = await run(process.execPath, [BUF, "build", "parley.binpb", "-o", "-#format=json"], {
      cwd: folder,
      maxBuffer: 16 * 1024 * 1024,
    });
    expect(stdout).toContain("parley/v1/completion.proto");
    expect(stdout).toContain("Randomness, 0 to 2.");
    expect(stdout).not.toContain("parley/console");
  });
});
