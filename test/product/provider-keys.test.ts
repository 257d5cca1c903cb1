import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, runProduct, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

const LIMITED = "limited-key-of-the-provider";
const IN_FILE = "key-in-a-file-of-the-provider";

let upstream: Server;
let folder: string;
let product: Product;
let baseUrl: string;
const used: (string | undefined)[] = [];

const ANSWER = { choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }] };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "parley-keys-"));
  writeFileSync(join(folder, "key"), `${IN_FILE}\n`);
  upstream = createServer((request, response) => {
    const { authorization } = request.headers;
    used.push(authorization?.replace("Bearer ", ""));
    request.resume().on("end", () => {
      if (authorization === `Bearer ${LIMITED}`) response.writeHead(429, { "retry-after": "60" }).end("{}");
      else if (authorization === `Bearer ${IN_FILE}`) response.end(JSON.stringify(ANSWER));
      else response.writeHead(400).end(JSON.stringify({ error: { message: `bad request with ${authorization}` } }));
    });
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  product = await startProduct({ config: configOf(`file:${folder}/key`) });
});
afterAll(async () => {
  await product?.stop();
  upstream.close();
  rmSync(folder, { recursive: true });
});

function configOf(file: string) {
  const own = { dialect: "openai", base_url: baseUrl, allow_private: true, api_keys: [LIMITED, file] };
  return { providers: { own }, models: { tiny: { provider: "own", upstream_model: "t" } } };
}

async function complete() {
  const response = await postChat(product.url, product.firstKey, { model: "tiny" });
  return { status: response.status, text: await response.text() };
}

describe("a provider with several keys", () => {
  it("is asked with the next key at once when one is limited, in one attempt, and not with that one again", async () => {
    const first = await complete();
    expect(first.status, first.text).toBe(200);
    expect(JSON.parse(first.text)).toMatchObject({ parley: { attempts: [{ outcome: "served" }] } });
    await complete();
    expect(used.filter((key) => key === LIMITED).length).toBeLessThan(2);
    expect(used.slice(-1)).toEqual([IN_FILE]);
  });

  it("is asked with a changed file's key, which is taken out of its errors", async () => {
    const replaced = "replaced-key-of-the-provider";
    writeFileSync(join(folder, "key"), replaced);
    await expect.poll(async () => (await complete()).status, { timeout: 10_000 }).toBe(400);
    const { text } = await complete();
    expect(text).toContain("bad request with");
    expect(text).not.toContain(replaced);
  });

  it("is not started with a file that is missing, and config check says so", async () => {
    const file = join(folder, "other.yaml");
    writeFileSync(file, JSON.stringify(configOf("file:/nowhere/key")));
    const check = runProduct(["config", "check", file], product);
    await check.ending;
    expect(check.output.stdout + check.output.stderr).toContain(
      "providers.own.api_keys[1]: there is no file /nowhere/key",
    );
    const start = runProduct(["serve", "--config", file], {
      home: product.home,
      env: { PARLEY_DATA_DIR: join(folder, "data") },
    });
    expect((await start.ending).code).not.toBe(0);
    expect(start.output.stderr).toContain("providers.own.api_keys[1]: ENOENT");
    expect(start.output.stderr).not.toMatch(/^\s+at /m);
  });
});
