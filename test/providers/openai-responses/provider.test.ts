import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import { type CompletionChunk, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import type { Provider, UpstreamCall } from "../../../src/core/provider.ts";
import { openaiResponses } from "../../../src/providers/openai-responses/provider.ts";
import { writeState } from "../../../src/providers/openai-responses/state.ts";
import { connectUpstream } from "../../../src/providers/transport/http.ts";
import { redactionOf } from "../../../src/providers/wire/redaction.ts";
import { batchesOf } from "../../support/batches.ts";
import { readFixture } from "../openai/fixture.ts";
import { modelThat } from "../openai/model.ts";
import { folded, plainAnswer } from "../openai/reading.ts";

interface Received {
  readonly path: string | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
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
async function serve(respond: RequestListener) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body: unknown = JSON.parse(Buffer.concat(pieces).toString());
      received.push({ path: request.url, headers: request.headers, body });
      respond(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const provider = openaiResponses({
    upstream: connectUpstream({ baseUrl, allowPrivate: true, connectMs: 1000 }),
    headers: { authorization: "Bearer secret-key-1" },
    redact: redactionOf(["secret-key-1"]),
  });
  opened.push({ provider, server });
  return { provider, received };
}

const SEALED = writeState({ reasoning: { id: "rs_1", summary: [], encrypted_content: "of another organization" } });

/** `signature`: of reasoning in the conversation. */
function callOf(provider: Provider, mode: "whole" | "stream", signature = ""): UpstreamCall {
  const said = (value: string) => ({ kind: { case: "text", value } }) as const;
  const reasoning = { kind: { case: "reasoning", value: {} }, signature } as const;
  const messages = [
    { role: Role.USER, parts: [said("hi")] },
    { role: Role.ASSISTANT, parts: [reasoning, said("Yes?")] },
    { role: Role.USER, parts: [said("hi")] },
  ];
  const model = modelThat();
  const translation = provider.translate(create(CompletionRequestSchema, { messages }), model, { mode });
  return { model, translation, signal: new AbortController().signal, idleMs: 2000 };
}

async function chunksOf(provider: Provider, signature?: string): Promise<CompletionChunk[]> {
  const chunks: CompletionChunk[] = [];
  for await (const batch of batchesOf((emit) => provider.stream(callOf(provider, "stream", signature), emit)))
    chunks.push(...batch);
  return chunks;
}

const WHOLE = readFixture("formats/r01-text").json("expected-reply.json");
const STREAM = readFixture("formats/r02-text-stream").bytes("expected-reply.sse");

const answer =
  (status: number, json: unknown, headers: Record<string, string> = {}): RequestListener =>
  (_, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(json));
  };

describe("a whole answer", () => {
  it("is asked for at /responses, with the first credential and one hop", async () => {
    const { provider, received } = await serve(answer(200, WHOLE));
    const { choices } = await provider.create(callOf(provider, "whole"));
    expect(choices[0]!.message!.parts[0]!.kind).toMatchObject({ case: "text" });
    expect(received).toMatchObject([
      {
        path: "/v1/responses",
        headers: { authorization: "Bearer secret-key-1", "accept-encoding": "identity", "x-parley-hops": "1" },
        body: { model: "llama-x", store: false },
      },
    ]);
  });

  it("counts the gateways before it", async () => {
    const { provider, received } = await serve(answer(200, WHOLE));
    await provider.create({ ...callOf(provider, "whole"), hops: 1 });
    expect(received[0]!.headers).toMatchObject({ "x-parley-hops": "2" });
  });

  it("is refused by status and body, without the credential", async () => {
    const error = { message: "Incorrect API key provided: secret-key-1", code: "invalid_api_key" };
    const { provider } = await serve(answer(401, { error }));
    await expect(provider.create(callOf(provider, "whole"))).rejects.toMatchObject({ code: "upstream_refused_us" });
    const bad = { message: "secret-key-1 is bad", code: "invalid_value", param: "input[0]" };
    const other = await serve(answer(400, { error: bad }));
    await expect(other.provider.create(callOf(other.provider, "whole"))).rejects.toMatchObject({
      code: "upstream_rejected",
      message: "[key] is bad",
      param: "input[0]",
    });
    const limited = await serve(
      answer(429, { error: { message: "x", code: "rate_limit_exceeded" } }, { "retry-after": "3" }),
    );
    await expect(limited.provider.create(callOf(limited.provider, "whole"))).rejects.toMatchObject({
      code: "upstream_rate_limited",
      retryAfterMs: 3000,
    });
  });
});

describe("a streamed answer", () => {
  it.each([Infinity, 7, 1])("is read in writes of %s bytes", async (size) => {
    const { provider, received } = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      for (let at = 0; at < STREAM.length; at += size) response.write(STREAM.subarray(at, at + size));
      response.end();
    });
    expect(folded(await chunksOf(provider))).toMatchObject({
      choices: [{ finishReason: "FINISH_REASON_STOP", nativeFinishReason: "completed" }],
    });
    expect(received).toMatchObject([{ body: { stream: true } }]);
  });

  it("ends with its last event, though the upstream keeps the connection open", async () => {
    const { provider } = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(STREAM);
    });
    expect(folded(await chunksOf(provider))).toMatchObject({ choices: [{ finishReason: "FINISH_REASON_STOP" }] });
  });

  it("may be a whole one", async () => {
    const { provider } = await serve(answer(200, WHOLE));
    const other = await serve(answer(200, WHOLE));
    const whole = await other.provider.create(callOf(other.provider, "whole"));
    expect(folded(await chunksOf(provider))).toEqual(plainAnswer(whole));
  });
});

describe("reasoning that another organization encrypted", () => {
  const error = {
    message: "The encrypted content gAAA...DQ== could not be verified. Reason: the organization did not match.",
    type: "invalid_request_error",
    code: "invalid_encrypted_content",
  };
  const inputsOf = (received: readonly Received[]): unknown[] =>
    received.map(({ body }) => (body as { input: { type: string }[] }).input.map(({ type }) => type));
  const BOTH = [
    ["message", "reasoning", "message", "message"],
    ["message", "message", "message"],
  ];

  /** Answers the first calls in one way, and further ones in another. */
  const first = (times: number, refusal: RequestListener, then: RequestListener): RequestListener => {
    let calls = 0;
    return (request, response) => (calls++ < times ? refusal : then)(request, response);
  };
  const events =
    (text: string | Buffer): RequestListener =>
    (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(text);
    };

  it("is left out, and the answer asked for once more", async () => {
    const { provider, received } = await serve(first(1, answer(400, { error }), answer(200, WHOLE)));
    await provider.create(callOf(provider, "whole", SEALED));
    expect(inputsOf(received)).toEqual(BOTH);
    expect((received[1]!.body as { store: unknown }).store).toBe(false);
  });

  it("is left out too where the item that followed it is missing", async () => {
    const message = "Item 'rs_1' of type 'reasoning' was provided without its required following item.";
    const refusal = answer(400, { error: { message, type: "invalid_request_error" } });
    const { provider, received } = await serve(first(1, refusal, answer(200, WHOLE)));
    await provider.create(callOf(provider, "whole", SEALED));
    expect(inputsOf(received)).toEqual(BOTH);
  });

  it.each<[string, RequestListener]>([
    ["with a status", answer(400, { error })],
    [
      "in the stream",
      events(`data: ${JSON.stringify({ type: "response.failed", response: { status: "failed", error } })}\n\n`),
    ],
  ])("is left out of a stream that is refused %s", async (_, refusal) => {
    const { provider, received } = await serve(first(1, refusal, events(STREAM)));
    await chunksOf(provider, SEALED);
    expect(inputsOf(received)).toEqual(BOTH);
  });

  it.each<[string, string, number, object, number]>([
    ["a second time", SEALED, 2, { error }, 2],
    ["when there is none", "", 1, { error }, 1],
    ["for another reason", SEALED, 1, { error: { message: "Bad value." } }, 1],
  ])("is not blamed %s", async (_, signature, times, refusal, calls) => {
    const { provider, received } = await serve(first(times, answer(400, refusal), answer(200, WHOLE)));
    await expect(provider.create(callOf(provider, "whole", signature))).rejects.toMatchObject({
      code: "upstream_rejected",
    });
    expect(received).toHaveLength(calls);
  });
});

describe("a count", () => {
  it("is asked for at /responses/input_tokens", async () => {
    const { provider, received } = await serve(answer(200, { object: "response.input_tokens", input_tokens: 7 }));
    expect(await provider.count!(callOf(provider, "whole"))).toBe(7);
    expect(received).toMatchObject([{ path: "/v1/responses/input_tokens", body: { model: "llama-x" } }]);
    expect(received[0]!.body).not.toHaveProperty("store");
  });
});
