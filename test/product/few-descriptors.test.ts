import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { MAIN, makeHome, type Product, startProduct } from "../support/product.ts";

const DESCRIPTORS = 300;
const HEADERS = { "content-type": "application/json" };

/** A provider that answers the model `words` at once, and holds other calls until the test releases them. */
async function startProvider() {
  const held: ServerResponse[] = [];
  const answer = (response: ServerResponse): void => {
    const choices = [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "hi" } }];
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    response.writeHead(200, HEADERS);
    response.end(JSON.stringify({ id: "x", object: "chat.completion", created: 1, model: "m", choices, usage }));
  };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes: Buffer) => (body += bytes.toString()));
    request.on("end", () => (body.includes("words") ? answer(response) : held.push(response)));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => server.close().closeAllConnections());
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, held, answer };
}

async function startWithFewDescriptors(providerUrl: string): Promise<Product> {
  const home = makeHome();
  const program = join(home, "limited");
  writeFileSync(program, `#!/bin/sh\nulimit -n ${DESCRIPTORS}\nexec "${process.execPath}" "${MAIN}" "$@"\n`, {
    mode: 0o755,
  });
  const model = { provider: "local", max_output_tokens: 100 };
  const unlimited = "unlimited";
  const product = await startProduct({
    home,
    program,
    config: {
      limits: { requests_per_minute: unlimited, tokens_per_minute: unlimited, concurrent_requests: unlimited },
      providers: { local: { dialect: "openai", base_url: providerUrl, allow_private: true } },
      models: { held: { ...model, upstream_model: "held" }, words: { ...model, upstream_model: "words" } },
    },
  });
  onTestFinished(async () => {
    await product.stop();
    rmSync(home, { recursive: true });
  });
  return product;
}

async function ask({ url, firstKey }: Product): Promise<number> {
  const body = JSON.stringify({ model: "words", messages: [{ role: "user", content: "hi" }] });
  const headers = { ...HEADERS, authorization: `Bearer ${firstKey}` };
  return (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body })).status;
}

describe("a process with few file descriptors", () => {
  it("serves others when one caller has more calls in flight than it has descriptors", async () => {
    const provider = await startProvider();
    const product = await startWithFewDescriptors(provider.url);
    expect(product.output.stderr + product.output.stdout).toContain("fewer calls than overload.max_calls");
    const transports = Array.from({ length: 8 }, () =>
      createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` }),
    );
    const message = { role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] };
    const outcomes: string[] = [];
    const calls = Array.from({ length: 2 * DESCRIPTORS }, async (_, index) => {
      const client = createClient(CompletionService, transports[index % transports.length]!);
      const headers = { authorization: `Bearer ${product.firstKey}` };
      await client.create({ model: "held", messages: [message] }, { headers }).then(
        () => outcomes.push("served"),
        (error: unknown) => outcomes.push(String(error)),
      );
    });
    await expect.poll(() => outcomes.length + provider.held.length, { timeout: 20_000 }).toBe(2 * DESCRIPTORS);
    expect(new Set(outcomes)).toEqual(
      new Set(["ConnectError: [unavailable] The gateway has reached its limit of calls in flight. Try again shortly."]),
    );
    expect(provider.held.length).toBeGreaterThan(40);
    for (const response of provider.held) provider.answer(response);
    await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome === "served")).toHaveLength(provider.held.length);
    // No circuit breaker has opened.
    expect(await ask(product)).toBe(200);
  });

  it("serves others when a client opens more connections to the operations port than it has descriptors", async () => {
    const { url } = await startProvider();
    const product = await startWithFewDescriptors(url);
    const port = Number(new URL(product.operationsUrl).port);
    const sockets: Socket[] = [];
    onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
    for (let count = 0; count < 2 * DESCRIPTORS; count++) {
      const socket = connect({ port, host: "127.0.0.1" }).on("error", () => undefined);
      sockets.push(socket);
      await once(socket, "connect");
    }
    // Beyond several looks at the memory, which need a descriptor.
    for (let count = 0; count < 10; count++) {
      expect(await ask(product)).toBe(200);
      await new Promise((resolve) => void setTimeout(resolve, 100));
    }
    expect((await fetch(`${product.operationsUrl}/healthz`)).status).toBe(200);
    expect(product.output.stderr + product.output.stdout).not.toContain("memory cannot be measured");
  });
});
