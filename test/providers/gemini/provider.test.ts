import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fromJson } from "@bufbuild/protobuf";
import { GoogleGenAI } from "@google/genai";
import { afterEach, describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Provider, UpstreamCall, UpstreamModel } from "../../../src/core/provider.ts";
import { gemini } from "../../../src/providers/gemini/provider.ts";
import { connectUpstream } from "../../../src/providers/transport/http.ts";
import { foldStream } from "../../support/fold.ts";
import { bytesOf, outlineOf } from "./fixture.ts";
import { flash } from "./model.ts";
import type { Emit } from "../../../src/core/provider.ts";

interface Seen {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Answerer = (response: ServerResponse) => void;

let server: Server | undefined;
let provider: Provider | undefined;

afterEach(async () => {
  await provider?.close();
  server?.closeAllConnections();
  server?.close();
});

/** A provider whose upstream answers every call like this, and the requests that it saw. */
async function answering(answer: Answerer): Promise<{ readonly gemini: Provider; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const own = createServer((request, response) => {
    const bytes: Buffer[] = [];
    request.on("data", (each: Buffer) => bytes.push(each));
    request.on("end", () => {
      seen.push({ url: request.url ?? "", headers: request.headers, body: Buffer.concat(bytes).toString("utf8") });
      answer(response);
    });
  });
  server = own;
  own.listen(0, "127.0.0.1");
  await once(own, "listening");
  const { port } = own.address() as AddressInfo;
  const upstream = connectUpstream({
    baseUrl: `http://127.0.0.1:${port}/prefix/`,
    allowPrivate: true,
    connectMs: 1000,
  });
  provider = gemini({ upstream, headers: { "x-goog-api-key": "first", "x-team": "a" } });
  return { gemini: provider, seen };
}

const answerWith =
  (type: string, body: string | Buffer, status = 200): Answerer =>
  (response) =>
    response.writeHead(status, { "content-type": type }).end(body);

const json = (value: unknown, status = 200): Answerer => answerWith("application/json", JSON.stringify(value), status);
const fixture = (scenario: string): Answerer =>
  answerWith("text/event-stream", bytesOf(scenario, "upstream-response.sse"));

const HI = { candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }] };

function call(from: Provider, mode: "whole" | "stream", model: UpstreamModel = flash()): UpstreamCall {
  const request = fromJson(CompletionRequestSchema, { messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] });
  return {
    model,
    translation: from.translate(request, model, { mode }),
    signal: new AbortController().signal,
    idleMs: 5000,
  };
}

async function collect(stream: (emit: Emit) => Promise<void>): Promise<string[]> {
  const said: string[] = [];
  await stream((batch) => {
    said.push(...outlineOf(batch));
    return undefined;
  });
  return said;
}

const failsWith = (code: string, message: string): Error => expect.objectContaining({ code, message }) as Error;

describe("a whole answer", () => {
  it.each([
    ["gemini-3-pro", "models/gemini-3-pro"],
    ["a?b c", "models/a%3Fb%20c"],
    ["models/gemini-3-pro", "models/gemini-3-pro"],
    ["tunedModels/a b", "tunedModels/a%20b"],
  ])("of the model %s is asked for at %s", async (name, path) => {
    const { gemini: own, seen } = await answering(json(HI));
    await own.create(call(own, "whole", flash({}, { name })));
    expect(seen).toMatchObject([{ url: `/prefix/v1beta/${path}:generateContent` }]);
  });

  it("is asked for at the model's address with the first key", async () => {
    const { gemini: own, seen } = await answering(json(HI));
    const answer = await own.create(call(own, "whole", flash({}, { name: "a b" })));
    expect(answer.choices).toMatchObject([{ message: { parts: [{ kind: { value: "hi" } }] } }]);
    expect(seen).toMatchObject([
      {
        url: "/prefix/v1beta/models/a%20b:generateContent",
        headers: {
          "x-goog-api-key": "first",
          "content-type": "application/json",
          "x-team": "a",
          accept: "application/json",
        },
        body: '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
      },
    ]);
  });

  it("trap 17: is put together from a stream when it may be long", async () => {
    const { gemini: own, seen } = await answering(fixture("21-gemini-text-stream"));
    const answer = await foldStream((emit) => own.stream(call(own, "whole", flash({ streamAbove: 0 })), emit));
    expect(answer.choices).toMatchObject([{ message: { parts: [{ kind: { value: "ÅÄÖ 🐙" } }] } }]);
    expect(seen[0]?.url).toBe("/prefix/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse");
  });

  it("trap 22: that is an error in spite of its status fails by its inner type", async () => {
    const { gemini: own } = await answering(json({ error: { code: 503, status: "UNAVAILABLE", message: "busy" } }));
    await expect(own.create(call(own, "whole"))).rejects.toThrow(
      failsWith("upstream_unavailable", "The upstream provider is temporarily overloaded."),
    );
  });

  it("that is a page of HTML fails as unreadable", async () => {
    const { gemini: own } = await answering(answerWith("text/html", "<html>"));
    await expect(own.create(call(own, "whole"))).rejects.toThrow(
      failsWith("upstream_protocol", "The upstream provider's answer could not be read."),
    );
  });

  it("that is refused fails by its status", async () => {
    const { gemini: own } = await answering(json({ error: { status: "NOT_FOUND" } }, 404));
    await expect(own.create(call(own, "whole"))).rejects.toThrow(
      failsWith("upstream_refused_us", "The upstream provider does not know the model."),
    );
  });
});

describe("a stream", () => {
  it("trap 8 and 12: is asked for as events, uncompressed", async () => {
    const { gemini: own, seen } = await answering(fixture("21-gemini-text-stream"));
    expect(await collect((emit) => own.stream(call(own, "stream"), emit))).toEqual([
      "text",
      "text",
      "text",
      "choiceFinish",
      "usage",
    ]);
    expect(seen).toMatchObject([
      {
        url: "/prefix/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
        headers: { accept: "text/event-stream", "accept-encoding": "identity" },
      },
    ]);
  });

  it("trap 11: that comes as JSON is read as the answer it is, or as the array of its pieces", async () => {
    const { gemini: own } = await answering(json(HI));
    expect(await collect((emit) => own.stream(call(own, "stream"), emit))).toEqual(["text", "choiceFinish"]);
    const { gemini: other } = await answering(json([{ candidates: [{ content: { parts: [{ text: "o" }] } }] }, HI]));
    expect(await collect((emit) => other.stream(call(other, "stream"), emit))).toEqual([
      "text",
      "text",
      "choiceFinish",
    ]);
  });

  it("trap 11: that comes as an error in JSON, or as HTML, fails", async () => {
    const { gemini: own } = await answering(json([{ error: { code: 429 } }]));
    await expect(collect((emit) => own.stream(call(own, "stream"), emit))).rejects.toThrow(
      failsWith("upstream_rate_limited", "The upstream provider is rate limiting requests."),
    );
    const { gemini: other } = await answering(answerWith("text/html", "<html>"));
    await expect(collect((emit) => other.stream(call(other, "stream"), emit))).rejects.toThrow(
      failsWith("upstream_protocol", "The upstream provider answered with something that is not a stream."),
    );
  });

  it("trap 20: that is reset fails after what it said", async () => {
    const { gemini: own } = await answering((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const event = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: "a" }] } }] })}\r\n\r\n`;
      response.write(event, () => response.destroy());
    });
    const said: string[] = [];
    const read = async (): Promise<void> => {
      await own.stream(call(own, "stream"), (batch) => void said.push(...batch.map(({ event }) => event.case ?? "")));
    };
    await expect(read()).rejects.toBeInstanceOf(Failure);
    expect(said).toEqual(["partStart", "partDelta"]);
  });

  it("trap 14: that is aborted ends with the signal's reason", async () => {
    const leaving = new AbortController();
    const { gemini: own } = await answering(() => leaving.abort(new Failure("cancelled", "The caller left.")));
    const asked = { ...call(own, "stream"), signal: leaving.signal };
    await expect(collect((emit) => own.stream(asked, emit))).rejects.toThrow(
      failsWith("cancelled", "The caller left."),
    );
  });
});

describe("a stream that is aborted between events that each have a finish reason", () => {
  it("has no count", async () => {
    const { gemini: own } = await answering((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const candidates = [{ content: { parts: [{ text: "a" }] }, finishReason: "STOP" }];
      const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1 };
      response.write(`data: ${JSON.stringify({ candidates, usageMetadata })}\r\n\r\n`);
    });
    const leaving = new AbortController();
    const said: string[] = [];
    const reading = own.stream({ ...call(own, "stream"), signal: leaving.signal }, (batch) => {
      said.push(...batch.map(({ event }) => event.case ?? ""));
      setTimeout(() => leaving.abort(new Failure("cancelled", "The caller left.")), 10);
      return undefined;
    });
    await expect(reading).rejects.toThrow(failsWith("cancelled", "The caller left."));
    expect(said).toEqual(["partStart", "partDelta"]);
  });
});

describe("signatures of another account (trap 99)", () => {
  it.each(["whole", "stream"] as const)("do not stand in the way of an answer, %s", async (mode) => {
    const bodies: string[] = [];
    const { gemini: own, seen } = await answering((response) => {
      const { body } = seen.at(-1)!;
      bodies.push(body);
      const error = { code: 400, message: "Corrupted thought signature.", status: "INVALID_ARGUMENT" };
      if (body.includes("Zm9yZWlnbg==")) json({ error }, 400)(response);
      else json(HI)(response);
    });
    const signed = { role: "ROLE_ASSISTANT", parts: [{ text: "a", signature: "Zm9yZWlnbg==" }] };
    const messages = [signed, { role: "ROLE_USER", parts: [{ text: "b" }] }];
    const translation = own.translate(fromJson(CompletionRequestSchema, { messages }), flash(), { mode });
    const asked = { ...call(own, mode), translation };
    await (mode === "whole" ? own.create(asked) : collect((emit) => own.stream(asked, emit)));
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toContain('"thoughtSignature":"skip_thought_signature_validator"');
  });
});

describe("the provider's own client", () => {
  it("sends to the same address, and the same key in the same header", async () => {
    const { gemini: own, seen } = await answering(json(HI));
    await own.create(call(own, "whole"));
    const { port } = server!.address() as AddressInfo;
    const client = new GoogleGenAI({
      apiKey: "first",
      httpOptions: { apiVersion: "v1beta", baseUrl: `http://127.0.0.1:${port}/prefix` },
    });
    await client.models.generateContent({ model: "gemini-3.8-flash", contents: "hi" });
    const [ours, theirs] = seen.map(({ url, headers, body }) => [
      url,
      headers["x-goog-api-key"],
      JSON.parse(body) as unknown,
    ]);
    expect(ours).toEqual(theirs);
  });
});
