import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CompletionRequestSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { startTestFront, type TestFront } from "../support/front.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";

const CREATE = `/${CompletionService.typeName}/Create`;
const STREAM = `/${CompletionService.typeName}/Stream`;
const HI = { model: "alpha-haiku-4.5", messages: [{ role: "user", content: "hi" }] };

let gateway: TestGateway;
let front: TestFront;
/** Keys with one request a minute and access to one model. */
const keys: string[] = [];

beforeAll(async () => {
  gateway = await startTestGateway({
    config: {},
    async prepareKeys(context) {
      const limits = { ...NO_LIMITS, requestsPerMinute: 1, concurrentRequests: 1 };
      for (let at = 0; at < 40; at++) {
        const { secret } = await createKey(context, { name: `key ${at}`, models: ["alpha-haiku-4.5"], limits });
        keys.push(secret);
      }
    },
  });
  front = await startTestFront(`127.0.0.1:${gateway.grpcPort}`);
});
afterAll(async () => {
  await front.close();
  await gateway.close();
});

interface Said {
  readonly status: number;
  readonly code: unknown;
  readonly retryAfter: string | null;
}

async function post(path: string, key: string, { body, type = "application/json", port = gateway.httpPort }: Post) {
  const headers = { "content-type": type, authorization: `Bearer ${key}` };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body });
  const text = await response.text();
  const json = text.startsWith("{") ? (JSON.parse(text) as { error?: { code?: unknown }; code?: unknown }) : {};
  const said: Said = {
    status: response.status,
    code: json.error?.code ?? json.code,
    retryAfter: response.headers.get("retry-after"),
  };
  return said;
}

interface Post {
  readonly body: string | Uint8Array<ArrayBuffer>;
  readonly type?: string;
  readonly port?: number;
}

async function callGrpc(path: string, key: string, body: Uint8Array): Promise<number | undefined> {
  const client = new Client(`127.0.0.1:${gateway.grpcPort}`, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const bytes = (each: Buffer): Buffer => each;
  try {
    const error = await new Promise<ServiceError | null>((resolve) => {
      if (path === CREATE) client.makeUnaryRequest(path, bytes, bytes, Buffer.from(body), metadata, resolve);
      else
        client
          .makeServerStreamRequest(path, bytes, bytes, Buffer.from(body), metadata)
          .on("data", () => undefined)
          .on("error", resolve)
          .on("end", () => resolve(null));
    });
    return error?.code;
  } finally {
    client.close();
  }
}

const protobuf = (model: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { model })));

const WRONG: readonly (readonly [what: string, status: number, body: string])[] = [
  ["is not JSON", 400, "{"],
  ["has a wrong type", 400, JSON.stringify({ ...HI, messages: 7 })],
  ["names a model that does not exist", 404, JSON.stringify({ ...HI, model: "nope" })],
  ["names a model that the key may not use", 403, JSON.stringify({ ...HI, model: "alpha-opus-4.5" })],
  ["is invalid", 400, JSON.stringify({ ...HI, temperature: 9 })],
  ["is too large", 413, " ".repeat(32 * 1024 * 1024 + 1)],
];

describe("a key with one request a minute", () => {
  it.each(WRONG)("is refused after a request that %s", async (_, status, body) => {
    const key = keys.pop()!;
    expect(await post("/v1/chat/completions", key, { body })).toMatchObject({ status });
    const again = await post("/v1/chat/completions", key, { body: body.slice(0, 100_000) });
    expect(again).toMatchObject({ status: 429, code: "rate_limit_exceeded", retryAfter: "60" });
    expect(await post("/v1/chat/completions", key, { body: JSON.stringify(HI) })).toMatchObject({ status: 429 });
  });

  it.each(WRONG.slice(0, -1))("is refused by a front after a request that %s", async (_, status, body) => {
    const key = keys.pop()!;
    const { httpPort: port } = front;
    expect(await post("/v1/chat/completions", key, { body, port })).toMatchObject({ status });
    expect(await post("/v1/chat/completions", key, { body, port })).toMatchObject({ status: 429 });
  });

  it.each(["{", "{}", '{"model":7}'])("is refused over Connect after %s", async (body) => {
    const key = keys.pop()!;
    expect(await post(CREATE, key, { body })).toMatchObject({ status: 400, code: "invalid_argument" });
    expect(await post(CREATE, key, { body })).toMatchObject({ status: 429, code: "resource_exhausted" });
  });

  it("is refused over Connect after invalid bytes or an unknown model", async () => {
    for (const body of [Uint8Array.of(0xff), protobuf("nope")]) {
      const key = keys.pop()!;
      const type = "application/proto";
      expect((await post(CREATE, key, { body, type })).status).toBeGreaterThanOrEqual(400);
      expect(await post(CREATE, key, { body, type })).toMatchObject({ status: 429 });
    }
  });

  it.each([
    ["an invalid message", Uint8Array.of(0xff)],
    ["a message without messages", protobuf("alpha-haiku-4.5")],
    ["a message with an unknown model", protobuf("nope")],
  ])("is refused over gRPC after %s", async (_, body) => {
    for (const path of [CREATE, STREAM]) {
      const key = keys.pop()!;
      const first = await callGrpc(path, key, body);
      expect([3, 5]).toContain(first);
      expect(await callGrpc(path, key, body)).toBe(8);
    }
  });

  it("is refused over gRPC after two messages in a request of one", async () => {
    const key = keys.pop()!;
    const client = new Client(`127.0.0.1:${gateway.grpcPort}`, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${key}`);
    const bytes = (each: Buffer): Buffer => each;
    const error = await new Promise<ServiceError | null>((resolve) => {
      const call = client.makeClientStreamRequest(CREATE, bytes, bytes, metadata, resolve);
      call.write(Buffer.alloc(0));
      call.write(Buffer.alloc(0));
      call.end();
    });
    client.close();
    expect(error?.code).toBe(3);
    expect(await callGrpc(CREATE, key, protobuf("alpha-haiku-4.5"))).toBe(8);
  });

  it("is refused after a look-up of a model that does not exist", async () => {
    const key = keys.pop()!;
    const headers = { authorization: `Bearer ${key}` };
    const get = () => fetch(`http://127.0.0.1:${gateway.httpPort}/v1/models/nope`, { headers });
    expect((await get()).status).toBe(404);
    expect((await get()).status).toBe(429);
  });

  it("is refused after a request with an invalid deadline", async () => {
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${keys.pop()!}`,
      "x-request-timeout-ms": "soon",
    };
    const url = `http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`;
    const ask = () => fetch(url, { method: "POST", headers, body: JSON.stringify(HI) });
    expect((await ask()).status).toBe(400);
    expect((await ask()).status).toBe(429);
  });

  it("is admitted once with valid requests", async () => {
    const key = keys.pop()!;
    expect(await post("/v1/chat/completions", key, { body: JSON.stringify(HI) })).toMatchObject({ status: 200 });
    expect(await post("/v1/chat/completions", key, { body: JSON.stringify(HI) })).toMatchObject({ status: 429 });
  });
});
