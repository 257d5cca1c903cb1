import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Provider, UpstreamCall, UpstreamModel } from "../../../src/core/provider.ts";
import { anthropic } from "../../../src/providers/anthropic/provider.ts";
import { connectUpstream } from "../../../src/providers/transport/http.ts";
import { batchesOf } from "../../support/batches.ts";
import { foldStream } from "../../support/fold.ts";
import { summarize } from "./answers.ts";
import { request } from "./builders.ts";
import { readFixture } from "./fixtures.ts";
import { adaptiveModel, budgetModel } from "./model.ts";
import { Failure } from "../../../src/core/failure.ts";

type Reply = (response: ServerResponse, received: Received) => void;
interface Received {
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

let server: Server | undefined;
let opened: Provider | undefined;

afterEach(async () => {
  await opened?.close();
  server?.closeAllConnections();
  server?.close();
});

/** A provider whose upstream answers with `reply`, and what it has received so far. */
async function connect(
  reply: Reply,
  headers: Record<string, string> = { "x-api-key": "key-1" },
): Promise<{ provider: Provider; received: Received[] }> {
  const received: Received[] = [];
  server = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      const body = JSON.parse(Buffer.concat(pieces).toString()) as Record<string, unknown>;
      received.push({ url: incoming.url, headers: incoming.headers, body });
      reply(response, received.at(-1)!);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const upstream = connectUpstream({ baseUrl: `http://127.0.0.1:${port}/prefix`, allowPrivate: true, connectMs: 1000 });
  const provider = anthropic({ upstream, headers });
  opened = provider;
  return { provider, received };
}

const answer =
  (contentType: string, body: string): Reply =>
  (response) => {
    response.writeHead(200, { "content-type": contentType });
    response.end(body);
  };
const JSON_TYPE = "application/json";
const SSE_TYPE = "text/event-stream; charset=utf-8";

interface CallOptions {
  readonly model?: UpstreamModel;
  readonly mode?: "whole" | "stream";
  readonly maxTokens?: number;
}

const callOf = (
  target: Provider,
  { model = budgetModel(), mode = "whole", maxTokens = 100 }: CallOptions = {},
): UpstreamCall => ({
  model,
  translation: target.translate(request({ maxOutputTokens: maxTokens }), model, { mode }),
  signal: new AbortController().signal,
  idleMs: 5000,
});

async function collect(target: Provider): Promise<CompletionChunk[]> {
  const chunks: CompletionChunk[] = [];
  for await (const batch of batchesOf((emit) => target.stream(callOf(target, { mode: "stream" }), emit))) {
    expect(batch.length).toBeGreaterThan(0);
    chunks.push(...batch);
  }
  return chunks;
}

describe("the provider", () => {
  it("posts to the prefix with version and credential, uncompressed (trap 12), and reads the answer", async () => {
    const { provider, received } = await connect(answer(JSON_TYPE, readFixture("01", "upstream-response.json")));
    const { choices } = await provider.create(callOf(provider));
    expect(choices).toMatchObject([
      { message: { parts: [{ kind: { value: "Hi" } }, { kind: { value: " there." } }] } },
    ]);
    expect(received).toMatchObject([
      {
        url: "/prefix/v1/messages",
        headers: {
          "x-api-key": "key-1",
          "anthropic-version": "2023-06-01",
          "content-type": JSON_TYPE,
          "accept-encoding": "identity",
        },
        body: { model: "claude-sonnet-4-5-20250929" },
      },
    ]);
    expect(received[0]?.headers).not.toHaveProperty("anthropic-beta");
  });

  it("fixture 18: asks for binding controls where the model binds its reasoning, beside configured features", async () => {
    const { provider, received } = await connect(answer(JSON_TYPE, readFixture("18", "upstream-response.json")), {
      "anthropic-beta": "other-2026",
      "x-team": "a",
    });
    await provider.create(callOf(provider, { model: adaptiveModel() }));
    await provider.create(callOf(provider));
    expect(received.map(({ headers }) => [headers["anthropic-beta"], headers["x-team"]])).toEqual([
      ["thinking-binding-controls-2026-08-01,other-2026", "a"],
      ["other-2026", "a"],
    ]);
  });

  it("streams", async () => {
    const { provider, received } = await connect(answer(SSE_TYPE, readFixture("04", "upstream-response.sse")));
    expect(summarize(await collect(provider))).toMatchObject({ text: "Checking.", calls: [{}, {}, {}] });
    expect(received).toMatchObject([{ headers: { accept: "text/event-stream" }, body: { stream: true } }]);
  });

  it("trap 17: puts a long whole answer together from a stream", async () => {
    const { provider, received } = await connect(answer(SSE_TYPE, readFixture("17", "upstream-response.sse")));
    const { choices, usage } = await foldStream((emit) =>
      provider.stream(callOf(provider, { maxTokens: 30_000 }), emit),
    );
    expect(choices).toMatchObject([
      {
        message: {
          parts: [
            { kind: { case: "reasoning" } },
            { kind: { case: "text" } },
            { kind: { case: "reasoning" } },
            { kind: { case: "toolCall", value: { input: { value: '{"city": "Paris"}' } } } },
          ],
        },
      },
    ]);
    expect([usage?.totalTokens, received[0]?.body["stream"]]).toEqual([440, true]);
  });

  it("trap 11: turns a whole answer in place of a stream into chunks", async () => {
    const { provider } = await connect(answer(JSON_TYPE, readFixture("08", "upstream-response.json")));
    expect(summarize(await collect(provider))).toMatchObject({ text: "It is 18C.", reasoning: "Done." });
  });

  it("trap 11: refuses a whole answer in place of a stream with more than an event may hold", async () => {
    const content = Array.from({ length: 30_000 }, () => ({ type: "text", text: "x" }));
    const { provider } = await connect(
      answer(JSON_TYPE, JSON.stringify({ type: "message", content, stop_reason: "end_turn" })),
    );
    await expect(collect(provider)).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it.each<[string, Reply, object]>([
    ["traps 11 and 29: HTML with 200", answer("text/html", "<html>"), { code: "upstream_protocol" }],
    [
      "trap 22: an error with 200",
      answer(JSON_TYPE, '{"type":"error","error":{"type":"overloaded_error"}}'),
      { detail: "upstream_overloaded" },
    ],
    ["an empty answer", answer(JSON_TYPE, ""), { code: "upstream_protocol" }],
    [
      "a refusal",
      (response) => void response.writeHead(429, { "retry-after": "7" }).end("{}"),
      { code: "upstream_rate_limited", retryAfterMs: 7000 },
    ],
    ["a closed connection", (response) => void response.destroy(), { code: "upstream_unavailable" }],
    [
      "a connection that breaks in the answer",
      (response) => {
        response.writeHead(200, { "content-type": JSON_TYPE, "content-length": "100" });
        response.write("{", () => response.destroy());
      },
      { name: "Failure" },
    ],
  ])("fails, whole and streaming, at %s", async (_, reply, expected) => {
    const { provider } = await connect(reply);
    await expect(provider.create(callOf(provider))).rejects.toMatchObject(expected);
    await expect(collect(provider)).rejects.toMatchObject(expected);
  });

  it.each(["14", "15", "16"])("fixture %s: fails while it streams", async (number) => {
    const { provider } = await connect(answer(SSE_TYPE, readFixture(number, "upstream-response.sse")));
    const failed = { name: "Failure", code: number === "16" ? "upstream_protocol" : "upstream_unavailable" };
    await expect(collect(provider)).rejects.toMatchObject(failed);
  });

  it("trap 14: closes the connection when the caller stops reading", async () => {
    let closed = false;
    const { provider } = await connect((response) => {
      response.writeHead(200, { "content-type": SSE_TYPE });
      response.write(readFixture("15", "upstream-response.sse").split("event: error")[0]);
      response.on("close", () => (closed = true));
    });
    const leaving = new AbortController();
    const call = { ...callOf(provider, { mode: "stream" }), signal: leaving.signal };
    const leave = (): void => leaving.abort(new Failure("cancelled", "The caller left."));
    for await (const batch of batchesOf((emit) => provider.stream(call, emit), leave)) {
      expect(summarize(batch)).toEqual({ parts: ["text"], text: "Once upon" });
      break;
    }
    await expect.poll(() => closed).toBe(true);
  });
});
