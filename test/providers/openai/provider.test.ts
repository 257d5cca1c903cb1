import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import { type CompletionChunk, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Capabilities, Provider, UpstreamCall } from "../../../src/core/provider.ts";
import { connectUpstream } from "../../../src/providers/transport/http.ts";
import { openai } from "../../../src/providers/openai/provider.ts";
import { batchesOf } from "../../support/batches.ts";
import { foldStream } from "../../support/fold.ts";
import { readFixture } from "./fixture.ts";
import { modelThat } from "./model.ts";
import { plain, plainAnswer, toSse } from "./reading.ts";

interface Received {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

const opened: { provider: Provider; server: Server }[] = [];
afterEach(async () => {
  for (const { provider, server } of opened.splice(0)) {
    await provider.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A provider in front of a server with scripted answers, and what the server received. */
async function serve(respond: RequestListener, headers: Record<string, string> = {}) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      received.push({
        path: request.url,
        headers: request.headers,
        body: JSON.parse(Buffer.concat(pieces).toString()),
      });
      respond(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs: 1000 });
  const provider = openai({ upstream, headers: { authorization: "Bearer key-1", ...headers } });
  opened.push({ provider, server });
  return { provider, received };
}

function callOf(provider: Provider, mode: "whole" | "stream", can: Partial<Capabilities> = {}): UpstreamCall {
  const request = create(CompletionRequestSchema, {
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } }] }],
  });
  const model = modelThat(can);
  return {
    model,
    translation: provider.translate(request, model, { mode }),
    signal: new AbortController().signal,
    idleMs: 2000,
  };
}

async function collect(provider: Provider): Promise<{ chunks: CompletionChunk[]; failure: unknown }> {
  const chunks: CompletionChunk[] = [];
  try {
    for await (const batch of batchesOf((emit) => provider.stream(callOf(provider, "stream"), emit))) {
      expect(batch.length).toBeGreaterThan(0);
      chunks.push(...batch);
    }
  } catch (failure) {
    return { chunks, failure };
  }
  return { chunks, failure: undefined };
}

const send =
  (contentType: string, body: string | Buffer, status = 200): RequestListener =>
  (_, response) => {
    response.writeHead(status, { "content-type": contentType }).end(body);
  };
const completion = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
});
const hi = {
  choices: [
    {
      message: { role: "ROLE_ASSISTANT", parts: [{ text: "Hi" }] },
      finishReason: "FINISH_REASON_STOP",
      nativeFinishReason: "stop",
    },
  ],
  usage: undefined,
};
const events = toSse(
  { choices: [{ index: 0, delta: { content: "Hi" } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
);
const hiChunks = [
  { delta: { text: "Hi" } },
  { choiceFinish: { finishReason: "FINISH_REASON_STOP", nativeFinishReason: "stop" } },
];

describe("a whole answer", () => {
  it("is posted for with the credential, and read", async () => {
    const { provider, received } = await serve(send("application/json", completion), { "x-team": "a" });
    expect(plainAnswer(await provider.create(callOf(provider, "whole")))).toEqual(hi);
    expect(received).toMatchObject([
      {
        path: "/v1/chat/completions",
        headers: {
          authorization: "Bearer key-1",
          "content-type": "application/json",
          accept: "application/json",
          "x-team": "a",
        },
        body: { model: "llama-x", messages: [{ role: "user", content: "hi" }] },
      },
    ]);
  });

  it.each([
    [undefined, "1"],
    [0, "1"],
    [1, "2"],
  ])("is posted for with one gateway more than the request came through (%j)", async (hops, said) => {
    const { provider, received } = await serve(send("application/json", completion), { "x-parley-hops": "0" });
    await provider.create({ ...callOf(provider, "whole"), hops });
    expect(received[0]!.headers["x-parley-hops"]).toBe(said);
  });

  it("trap 17: is fetched as a stream when it may be long, and put together", async () => {
    const { provider, received } = await serve(send("text/event-stream", events));
    const call = callOf(provider, "whole", { streamAbove: 0 });
    expect(plainAnswer(await foldStream((emit) => provider.stream(call, emit)))).toEqual(hi);
    expect(received).toMatchObject([{ headers: { accept: "text/event-stream" }, body: { stream: true } }]);
  });

  it.each<[string, RequestListener, object]>([
    [
      "trap 22: an error body with 200",
      send("application/json", readFixture("42-openai-compat-200-error-body").bytes("upstream-response.json")),
      { code: "upstream_unavailable", message: "The upstream provider failed." },
    ],
    ["trap 11: a page with 200", send("text/html", "<html>"), { code: "upstream_protocol" }],
    ["an empty body", send("application/json", ""), { code: "upstream_protocol" }],
    ["half a body", send("application/json", completion.slice(0, 40)), { code: "upstream_protocol" }],
    [
      "trap 26: fixture 43",
      send("application/json", readFixture("43-openai-error-insufficient-quota").bytes("upstream-response.json"), 429),
      { code: "upstream_unavailable", upstreamStatus: 429 },
    ],
    ["trap 29: a proxy's page", send("text/html", "<html>", 413), { code: "upstream_rejected", upstreamStatus: 413 }],
    ["a connection that is closed at once", (request) => request.socket.destroy(), { code: "upstream_unavailable" }],
  ])("fails for %s", async (_, respond, failure) => {
    const { provider } = await serve(respond);
    await expect(provider.create(callOf(provider, "whole"))).rejects.toMatchObject(failure);
  });
});

describe("a stream", () => {
  it("is posted for and read to its end", async () => {
    const { provider, received } = await serve(send("text/event-stream; charset=utf-8", events));
    const { chunks, failure } = await collect(provider);
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual(hiChunks);
    expect(received).toMatchObject([
      { headers: { accept: "text/event-stream" }, body: { stream: true, stream_options: { include_usage: true } } },
    ]);
  });

  it("trap 11: may come as a whole completion", async () => {
    const { provider } = await serve(send("application/json; charset=utf-8", completion));
    expect(plain((await collect(provider)).chunks)).toEqual(hiChunks);
  });

  it("ends at the marker, though the upstream keeps the connection open", async () => {
    const { provider } = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(events);
    });
    expect(plain((await collect(provider)).chunks)).toEqual(hiChunks);
  });

  it("gives what came before it broke", async () => {
    const { provider } = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(events.subarray(0, events.indexOf("\n\n") + 2), () => response.destroy());
    });
    const { chunks, failure } = await collect(provider);
    expect(plain(chunks)).toEqual(hiChunks.slice(0, 1));
    expect(failure).toBeInstanceOf(Failure);
    expect((failure as Failure).code).toMatch(/^upstream_(?:protocol|unavailable)$/);
  });

  it.each<[string, RequestListener, object]>([
    [
      "trap 11: an error as JSON",
      send("application/json", '{"error":{"code":502}}'),
      { code: "upstream_unavailable", message: "The upstream provider failed." },
    ],
    ["trap 11: a page", send("text/html", "<html>"), { code: "upstream_protocol" }],
    [
      "trap 18: an error as its first event",
      send("text/event-stream", 'data: {"error":{"code":429}}\n\n'),
      { code: "upstream_rate_limited" },
    ],
    ["an event that is not JSON", send("text/event-stream", "data: {\n\n"), { code: "upstream_protocol" }],
    [
      "trap 20: an early end",
      send("text/event-stream", ""),
      { code: "upstream_protocol", message: "The upstream provider closed the stream before it was complete." },
    ],
    [
      "a refusal",
      send("application/json", '{"error":{"message":"bad"}}', 400),
      { code: "upstream_rejected", message: "bad" },
    ],
  ])("fails for %s", async (_, respond, failure) => {
    const { provider } = await serve(respond);
    expect(await collect(provider)).toMatchObject({ chunks: [], failure });
  });

  it("trap 14: closes the connection when its reader leaves", async () => {
    let closed = 0;
    const { provider } = await serve((request, response) => {
      request.socket.on("close", () => closed++);
      response
        .writeHead(200, { "content-type": "text/event-stream" })
        .write(events.subarray(0, events.indexOf("\n\n") + 2));
    });
    const leaving = new AbortController();
    const call = { ...callOf(provider, "stream"), signal: leaving.signal };
    const leave = (): void => leaving.abort(new Failure("cancelled", "The caller left."));
    for await (const batch of batchesOf((emit) => provider.stream(call, emit), leave)) {
      expect(plain(batch)).toEqual(hiChunks.slice(0, 1));
      break;
    }
    await expect.poll(() => closed).toBe(1);
  });
});
