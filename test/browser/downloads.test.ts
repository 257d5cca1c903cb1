import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const BUF = join(root, "node_modules/@bufbuild/buf/bin/buf");

let product: Product;
let folder: string;

// Beside the tests in a browser, because what is downloaded is built with the pages.
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
  it("are for everybody, from pages of other origins too, and only to be read", async () => {
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

  it("are nothing but the public contract", async () => {
    for (const path of ["/proto/parley/console/v1/key.proto", "/proto/built.json", "/proto/..%2findex.html"]) {
      expect((await fetch(product.url + path)).status, path).toBe(404);
    }
  });

  it("make a client that works", async () => {
    writeFileSync(join(folder, "protos.tar.gz"), await download("/proto/parley-protos.tar.gz"));
    mkdirSync(join(folder, "proto"));
    await run("tar", ["-xzf", "protos.tar.gz", "-C", "proto"], { cwd: folder });
    const plugin = {
      local: join(root, "node_modules/.bin/protoc-gen-es"),
      out: "gen",
      opt: ["target=js", "import_extension=js"],
    };
    writeFileSync(join(folder, "buf.yaml"), JSON.stringify({ version: "v2", modules: [{ path: "proto" }] }));
    writeFileSync(join(folder, "buf.gen.yaml"), JSON.stringify({ version: "v2", plugins: [plugin] }));
    await run(process.execPath, [BUF, "generate"], { cwd: folder });
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const program = `
      import { createClient } from "@connectrpc/connect";
      import { createGrpcTransport } from "@connectrpc/connect-node";
      import { CompletionService } from "./gen/parley/v1/completion_pb.js";
      const client = createClient(CompletionService, createGrpcTransport({ baseUrl: "http://127.0.0.1:${product.grpcPort}" }));
      const completion = await client.create(
        { model: "alpha-haiku-4.5", messages: [{ role: 2, content: [{ content: { case: "text", value: "Hello!" } }] }] },
        { headers: { authorization: "Bearer " + process.env.KEY } },
      );
      console.log(completion.choices[0].message.content[0].content.value);`;
    writeFileSync(join(folder, "program.mjs"), program);
    const { stdout } = await run(process.execPath, ["program.mjs"], {
      cwd: folder,
      env: { KEY: product.firstKey },
      timeout: 30_000,
    });
    expect(stdout.trim()).not.toBe("");
  });

  it("describe themselves, with their comments, to tools that read descriptors", async () => {
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
