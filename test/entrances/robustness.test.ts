import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { grpcMessage } from "../../bench/load/http2-frames.ts";
import { ServerReflectionRequestSchema } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { type Act, refuses, says, type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { callGrpc } from "./scenarios/grpc-client.ts";

// Inputs that once crashed or blocked the process, or damaged another response.

const LIMITS = { first_content_ms: 400, idle_ms: 400, total_ms: 20_000 };
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let grpc: Client;

const sections = (): object => ({
  providers: {
    own: { dialect: "anthropic", base_url: upstream.url, allow_private: true, api_keys: ["secret-of-ours"] },
  },
  models: Object.fromEntries(
    ["first", "second"].map((name) => [
      name,
      { provider: "own", upstream_model: name, max_output_tokens: 64_000, timeouts: LIMITS },
    ]),
  ),
});

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  gateway = await startTestGateway({ config: sections() });
  grpc = new Client(`127.0.0.1:${gateway.grpcPort}`, credentials.createInsecure());
});

afterAll(async () => {
  grpc.close();
  await gateway.close();
  await upstream.close();
});

const metadata = (): Record<string, string> => ({ authorization: `Bearer ${gateway.key}` });
const messageBytes = (fields: Parameters<typeof create<typeof CompletionRequestSchema>>[1]): Buffer => {
  const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }];
  return Buffer.from(toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { messages, ...fields })));
};
const ask = (bytes: Buffer, headers = metadata()) =>
  callGrpc({ client: grpc, mode: "whole", bytes, metadata: headers, deadlineMs: 20_000 }).reply;

function post(path: string, body: object, headers: Record<string, string> = metadata()): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

/** Answers word by word, one every 150 ms. */
const answersSlowly =
  (words: number): Act =>
  (call) => {
    const { response, dialect } = call;
    const { content, ending } = dialect.events({ text: "word " });
    const delta = content.split("\n\n").find((event) => event.includes("text_delta"))!;
    response.writeHead(200, { "content-type": "text/event-stream" }).write(content);
    let left = words - 1;
    const timer = setInterval(() => {
      left -= 1;
      response.write(`${delta}\n\n`);
      if (left > 0) return;
      clearInterval(timer);
      response.end(ending);
    }, 150);
    response.once("close", () => clearInterval(timer));
  };

/** Begins a unary call over a connection of its own, with this value of `grpc-timeout`. */
function beginCreate(timeout: string) {
  const session = connectHttp2(`http://127.0.0.1:${gateway.grpcPort}`);
  const call = session.request({
    ...metadata(),
    ":method": "POST",
    ":path": "/parley.v1.CompletionService/Create",
    "content-type": "application/grpc",
    te: "trailers",
    "grpc-timeout": timeout,
  });
  return { session, call };
}

describe("texts that cannot be encoded as UTF-8", () => {
  it("in a model's name get a response, and the next call is served", async () => {
    const half = `${"a".repeat(255)}😀x`;
    expect(await ask(messageBytes({ model: half }))).toMatchObject({
      failure: { status: "NOT_FOUND MODEL_NOT_FOUND" },
    });
    upstream.script("first", [refuses(400, "bad \ud83d thing")]);
    expect(await ask(messageBytes({ model: "first" }))).toMatchObject({
      failure: { status: "INVALID_ARGUMENT UPSTREAM_REJECTED" },
    });
  });
});

describe("errors that exceed the size of trailers", () => {
  it("are truncated and sent", async () => {
    const bytes = messageBytes({ model: "first", logitBias: { ["k".repeat(100_000)]: 1000 } });
    expect(await ask(bytes)).toMatchObject({ failure: { status: "INVALID_ARGUMENT INVALID_REQUEST" } });
    const strict = messageBytes({ model: "first", strict: true });
    const field = (no: number): Uint8Array => new BinaryWriter().tag(no, WireType.Varint).uint32(1).finish();
    const many = Array.from({ length: 2000 }, (_, index) => field(1000 + index));
    expect(await ask(Buffer.concat([strict, ...many]))).toMatchObject({
      failure: { status: "INVALID_ARGUMENT INVALID_REQUEST" },
    });
  });
});

describe("messages that are slow to decode", () => {
  const bomb = Buffer.alloc(8 * 1024 * 1024, Buffer.from([0x1a, 0x00]));

  it("are not decoded before authentication", async () => {
    const begun = performance.now();
    const refused = await ask(bomb, { authorization: "Bearer nobody" });
    expect(refused).toMatchObject({ failure: { status: "UNAUTHENTICATED UNAUTHENTICATED" } });
    // Decoding four million messages takes seconds; the bound is generous.
    expect(performance.now() - begun).toBeLessThan(5000);
  });

  it("are refused with a valid key", async () => {
    expect(await ask(bomb)).toMatchObject({ failure: { status: "RESOURCE_EXHAUSTED REQUEST_TOO_LARGE" } });
  });

  it.each(["application/json", "application/proto"])("are refused over Connect: %s", async (type) => {
    const path = "/parley.v1.CompletionService/Create";
    const body = type === "application/json" ? `{"messages":${"[".repeat(1_000_000)}` : new Uint8Array(bomb);
    const send = (authorization: string): Promise<Response> =>
      fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
        method: "POST",
        headers: { "content-type": type, authorization },
        body,
      });
    const unknown = await send("Bearer nobody");
    expect(unknown.status).toBe(401);
    expect(unknown.headers.get("x-request-id")).toMatch(/^req_/);
    expect(await unknown.json()).toMatchObject({
      code: "unauthenticated",
      details: [{ type: "google.rpc.ErrorInfo" }],
    });
    const known = await send(`Bearer ${gateway.key}`);
    expect(await known.json()).toMatchObject({ code: expect.stringMatching(/invalid_argument|resource_exhausted/) });
  });
});

describe("a whole answer that is fetched as a stream", () => {
  it("may take longer than the first-content timeout", async () => {
    upstream.script("first", [answersSlowly(6)]);
    const reply = await post("/v1/chat/completions", {
      model: "first",
      max_tokens: 30_000,
      messages: [{ role: "user", content: "slowly" }],
    });
    expect(reply.status).toBe(200);
    const { choices } = (await reply.json()) as { choices: [{ message: { content: string } }] };
    expect(choices[0].message.content).toBe("word ".repeat(6));
  });
});

describe("a reload", () => {
  it("keeps the connections of calls in flight open", async () => {
    const fails: Act = (call) => void setTimeout(() => refuses(503)(call), 300);
    upstream.script("first", [fails, refuses(503)]);
    upstream.script("second", [says("from the second")]);
    const before = upstream.calls("first").length;
    const running = post("/v1/chat/completions", {
      model: "first",
      fallback_models: ["second"],
      messages: [{ role: "user", content: "hi" }],
    });
    await expect.poll(() => upstream.calls("first").length).toBeGreaterThan(before);
    await gateway.configure(sections());
    const reply = await running;
    expect(reply.status).toBe(200);
    expect(await reply.json()).toMatchObject({ model: "second" });
  });
});

describe("garbage after a request", () => {
  it("ends the connection without writing into the response in flight", async () => {
    await gateway.configure(sections());
    upstream.script("first", [answersSlowly(20)]);
    const body = JSON.stringify({ model: "first", stream: true, messages: [{ role: "user", content: "hi" }] });
    const socket = connect(gateway.httpPort, "127.0.0.1");
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    socket.on("error", () => undefined);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.key}`;
    socket.write(`${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await expect.poll(() => text).toContain("word");
    socket.write("\0garbage\r\n\r\n");
    await closed;
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

describe("a call that is cancelled before authentication", () => {
  it("is removed", async () => {
    const calls = Array.from({ length: 10 }, () => {
      const sent = httpRequest({
        port: gateway.httpPort,
        host: "127.0.0.1",
        method: "POST",
        path: "/v1/chat/completions",
        headers: { ...metadata(), "content-type": "application/json", "content-length": 1000 },
      });
      sent.on("error", () => undefined);
      sent.write("{");
      return sent;
    });
    for (const call of calls) call.destroy();
    await expect.poll(async () => (await gateway.readiness()).active_calls).toBe(0);
  });
});

describe("gRPC calls that end before their handler starts", () => {
  const active = async (): Promise<number> => (await gateway.readiness()).active_calls;

  it("are removed when the deadline passes before the request is complete", async () => {
    upstream.script("first", [says("Hello.")]);
    const message = messageBytes({ model: "first" });
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    const { session, call } = beginCreate("1m");
    call.write(Buffer.concat([head, message]));
    const [answer] = (await once(call, "response")) as [Record<string, string>];
    expect(answer["grpc-status"]).toBe("4");
    call.resume().end();
    await once(call, "close");
    // The handler still starts after the end. A later call that was answered shows that it has started.
    expect(await ask(messageBytes({ model: "first" }))).toMatchObject({ complete: true });
    await expect.poll(active, { timeout: 10_000 }).toBe(0);
    session.close();
  });

  it("are removed with many very short deadlines and immediate cancellations", async () => {
    upstream.script("first", [says("Hello.")]);
    const bytes = messageBytes({ model: "first" });
    const callers = Array.from({ length: 200 }, async (_, index) => {
      const call = callGrpc({ client: grpc, mode: "whole", bytes, metadata: metadata(), deadlineMs: 1 + (index % 8) });
      if (index % 5 === 0) setImmediate(() => call.leave());
      await call.reply;
    });
    await Promise.all(callers);
    await expect.poll(active, { timeout: 10_000 }).toBe(0);
  });
});

describe("a call with a deadline beyond what a timer can have is served", () => {
  const bytes = (): Buffer => messageBytes({ model: "first" });
  beforeAll(() => upstream.script("first", [says("Hello.")]));

  it.each(["597H", "99999999H", "2147484S", "99999999M"])("over gRPC: %s", async (timeout) => {
    const { session, call } = beginCreate(timeout);
    const ended = once(call, "trailers");
    call.resume().end(grpcMessage(bytes()));
    const [trailers] = (await ended) as [Record<string, string>];
    expect(trailers["grpc-status"]).toBe("0");
    session.close();
  });

  it.each([
    ["Connect", { "content-type": "application/proto", "connect-timeout-ms": "9999999999" }, bytes],
    ["gRPC-Web", { "content-type": "application/grpc-web+proto", "grpc-timeout": "597H" }, () => grpcMessage(bytes())],
  ])("over %s, without a warning on standard error", async (_, headers, body) => {
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
    const answer = await fetch(`http://127.0.0.1:${gateway.httpPort}/parley.v1.CompletionService/Create`, {
      method: "POST",
      headers: { ...metadata(), ...headers },
      body: body(),
    });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("Hello.")]);
    expect(warned).not.toHaveBeenCalled();
  });
});

describe("gRPC calls whose deadline passes in the middle of the response", () => {
  it("end with a status, also when more data is queued", async () => {
    upstream.script("first", [says("a".repeat(100_000))]);
    const session = connectHttp2(`http://127.0.0.1:${gateway.grpcPort}`);
    const call = session.request({
      ...metadata(),
      ":method": "POST",
      ":path": "/parley.v1.CompletionService/Stream",
      "content-type": "application/grpc",
      te: "trailers",
      "grpc-timeout": "500m",
    });
    call.end(grpcMessage(messageBytes({ model: "first" })));
    await once(call, "response");
    // The client does not read: a window of data arrives, and the rest waits beyond the deadline.
    await expect.poll(async () => (await gateway.readiness()).active_calls, { timeout: 10_000 }).toBe(0);
    const ended = once(call, "trailers");
    call.resume();
    const [trailers] = (await ended) as [Record<string, string>];
    expect(trailers["grpc-status"]).toBe("4");
    session.close();
  });
});

describe("messages of more than 16 KiB without a valid key", () => {
  it("end with a status when a handler has started to respond, as in reflection", async () => {
    const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const bytes = (each: Buffer): Buffer => each;
    const call = grpc.makeBidiStreamRequest(path, bytes, bytes).resume();
    const request = create(ServerReflectionRequestSchema, { host: "a".repeat(10_000) });
    call.write(Buffer.from(toBinary(ServerReflectionRequestSchema, request)));
    call.end(Buffer.from(toBinary(ServerReflectionRequestSchema, request)));
    const [ended] = (await once(call, "error")) as [ServiceError];
    expect(ended.code).toBe(status.UNAUTHENTICATED);
    // A call on the same connection is served.
    expect(await ask(messageBytes({ model: "first" }))).toMatchObject({ complete: true });
  });
});
