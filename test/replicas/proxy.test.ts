import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { localhost } from "../providers/transport/localhost-certificate.ts";
import { findFreePort } from "../support/free-port.ts";
import { type Product, startProduct } from "../support/product.ts";
import { postChat } from "../support/post-json.ts";

/** A company's proxy (tinyproxy of Debian), with a user and a password, before a provider with a certificate of its own authority. */
let proxy: ChildProcess;
let folder: string;
let provider: Server;
let product: Product;

const ANSWER = { choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }] };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "parley-proxy-"));
  provider = createServer(localhost, (request, response) => {
    request.resume().on("end", () => response.end(JSON.stringify(ANSWER)));
  });
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  const { port } = provider.address() as AddressInfo;
  const proxyPort = await findFreePort();
  const settings = [`Port ${proxyPort}`, "Listen 127.0.0.1", `LogFile "${folder}/log"`, "LogLevel Connect"];
  writeFileSync(join(folder, "conf"), [...settings, `ConnectPort ${port}`, "BasicAuth parley hunter2", ""].join("\n"));
  writeFileSync(join(folder, "ca.pem"), localhost.cert);
  proxy = spawn("tinyproxy", ["-d", "-c", join(folder, "conf")], { stdio: "ignore" });
  await vi.waitFor(() => once(connect(proxyPort, "127.0.0.1"), "connect"), 10_000);
  const of = (password: string) => ({
    dialect: "openai",
    base_url: `https://localhost:${port}/v1`,
    allow_private: true,
    proxy: `http://parley:${password}@127.0.0.1:${proxyPort}`,
    tls: { ca_file: join(folder, "ca.pem") },
  });
  product = await startProduct({
    config: {
      providers: { behind: of("hunter2"), refused: of("wrong") },
      models: {
        behind: { provider: "behind", upstream_model: "m" },
        refused: { provider: "refused", upstream_model: "m" },
      },
    },
  });
});
afterAll(async () => {
  await product?.stop();
  proxy?.kill();
  provider?.close();
  rmSync(folder, { recursive: true });
});

async function complete(model: string) {
  const response = await postChat(product.url, product.firstKey, { model });
  return { status: response.status, text: await response.text() };
}

it("a provider is reached through a real proxy with a password, and the proxy's refusal says so", async () => {
  const { status, text } = await complete("behind");
  expect(status, text).toBe(200);
  expect(readFileSync(join(folder, "log"), "utf8")).toMatch(/CONNECT localhost:\d+/);
  const refused = await complete("refused");
  expect(refused).toMatchObject({ status: 503, text: expect.stringContaining("The proxy did not connect") });
  expect(refused.text).not.toMatch(/wrong|hunter2/);
});
