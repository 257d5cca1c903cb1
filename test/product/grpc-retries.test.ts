import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { expect, it, onTestFinished } from "vitest";
import { CompletionRequestSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { serviceDefinition } from "../../src/inbound/grpc/definition.ts";
import { startProduct } from "../support/product.ts";
import { beginStream, localModel, startUpstream, textEvent, type UpstreamExchange } from "./support/upstream.ts";

const SERVICE_CONFIG = readFileSync(new URL("../../proto/parley/v1/service_config.json", import.meta.url), "utf8");

/** A stock client with the published service config, and a product whose only provider answers so. */
async function start(answer: (exchange: UpstreamExchange) => void) {
  const upstream = await startUpstream(answer);
  onTestFinished(() => upstream.close());
  const { providers, models } = localModel(upstream.url);
  const [model] = Object.values(models);
  const product = await startProduct({
    config: {
      grpc: { listen: "127.0.0.1:0", max_receive_mib: 1 },
      providers,
      models: { ...models, "local/other": model },
    },
  });
  onTestFinished(() => product.stop());
  const client = new Client(`127.0.0.1:${product.grpcPort}`, credentials.createInsecure(), {
    "grpc.service_config": SERVICE_CONFIG,
  });
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${product.firstKey}`);
  metadata.set("x-request-id", "req_mine");
  const toRequest = (fallbackModels: string[], text = "hi") => {
    const message = create(CompletionRequestSchema, {
      model: "local/test",
      fallbackModels,
      messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: text } }] }],
    });
    return { bytes: 0, read: () => message };
  };
  const { create: whole, stream } = serviceDefinition(CompletionService);
  return {
    upstream,
    product,
    ask: (fallbackModels: string[] = [], timeoutMs = 60_000, text?: string) =>
      new Promise<ServiceError | null>((resolve) => {
        const { path, requestSerialize, responseDeserialize } = whole!;
        const options = { deadline: Date.now() + timeoutMs };
        const request = toRequest(fallbackModels, text);
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, options, resolve);
      }),
    stream: () =>
      new Promise<{ headers: Metadata | undefined; error: ServiceError }>((resolve) => {
        const { path, requestSerialize, responseDeserialize } = stream!;
        const call = client.makeServerStreamRequest(
          path,
          requestSerialize,
          responseDeserialize,
          toRequest([]),
          metadata,
        );
        let headers: Metadata | undefined;
        call.on("metadata", (given: Metadata) => (headers = given));
        call.on("error", (error: ServiceError) => resolve({ headers, error }));
        call.resume();
      }),
  };
}

it("a stock retry policy does not repeat a completion whose fallbacks failed", async () => {
  const { upstream, ask } = await start(({ response }) => void response.writeHead(503).end("{}"));
  const error = await ask(["local/other"]);
  expect(error?.code).toBe(status.UNAVAILABLE);
  expect(error?.metadata.get("grpc-retry-pushback-ms")).toEqual(["-1"]);
  // Both models, each with the retries of one plan.
  expect(upstream.exchanges.length).toBeLessThanOrEqual(4);
});

it("a stock retry policy waits for the time in the response", async () => {
  const { upstream, ask } = await start(({ response }) => {
    response.writeHead(429, { "retry-after": "20" }).end("{}");
  });
  void ask([], 25_000);
  // By its own backoff the client would make its three attempts in less than four seconds.
  await sleep(5_000);
  expect(upstream.exchanges).toHaveLength(1);
});

it("a stock retry policy does not wait for a deadline that comes first", async () => {
  const { upstream, ask } = await start(({ response }) => {
    response.writeHead(429, { "retry-after": "20" }).end("{}");
  });
  const error = await ask([], 5_000);
  expect(error?.code).toBe(status.RESOURCE_EXHAUSTED);
  expect(error?.metadata.get("grpc-retry-pushback-ms")).toEqual(["-1"]);
  expect(upstream.exchanges).toHaveLength(1);
});

it("a stock retry policy does not send a message again that is too large", async () => {
  const { product, ask } = await start(() => undefined);
  const error = await ask([], 60_000, "x".repeat(2 * 1024 * 1024));
  expect(error).toMatchObject({
    code: status.RESOURCE_EXHAUSTED,
    details: expect.stringContaining("at most 1048576") as string,
  });
  expect(error?.metadata.get("grpc-retry-pushback-ms")).toEqual(["-1"]);
  expect(error?.metadata.get("grpc-status-details-bin")).toHaveLength(1);
  const refusals = (): number => product.output.stderr.split('"outcome":"request_too_large"').length - 1;
  await expect.poll(refusals).toBe(1);
});

it("a stream that breaks off does not repeat its metadata in the trailers", async () => {
  const { stream } = await start(({ response }) => {
    beginStream(response);
    response.write(textEvent("Once"), () => response.destroy());
  });
  const { headers, error } = await stream();
  expect(headers?.get("x-request-id")).toEqual(["req_mine"]);
  expect(error.metadata.get("x-request-id")).toEqual([]);
  expect(error.metadata.get("x-ratelimit-limit-requests")).toEqual([]);
  expect(error.metadata.get("grpc-status-details-bin")).toHaveLength(1);
});
