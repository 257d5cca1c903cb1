import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { cleanEnvironment } from "../product/support/clean-environment.ts";
import { begins, type Breakage } from "../support/scripted-upstream.ts";
import { startWorld, type World } from "./scenarios/world.ts";

/*
 * Streams that break after their first content, read by the official client of each format: none ends as if the answer were
 * complete. `test/product/` has the same for a provider that closes its connection.
 */

let world: World;

beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());
beforeEach(cleanEnvironment);

interface Broken {
  readonly what: string;
  readonly breakage: Breakage;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the gateway stops after the first content. */
  readonly stops?: true;
  /** What the error of each client has. */
  readonly chat: object;
  readonly responses: object;
  readonly messages: object;
  readonly gemini: object;
}

const BROKEN: readonly Broken[] = [
  {
    what: "whose provider sends an error",
    breakage: "error",
    headers: {},
    chat: { type: "service_unavailable", code: "upstream_overloaded" },
    responses: { code: "server_error" },
    messages: { type: "overloaded_error" },
    gemini: { status: 503 },
  },
  {
    what: "whose deadline passes",
    breakage: "silence",
    headers: { "x-request-timeout-ms": "1000" },
    chat: { type: "service_unavailable", code: "deadline_exceeded" },
    responses: { code: "server_error" },
    messages: { type: "timeout_error" },
    gemini: { status: 504 },
  },
  {
    what: "of a gateway that stops",
    breakage: "silence",
    headers: {},
    stops: true,
    chat: { type: "service_unavailable", code: "overloaded" },
    responses: { code: "server_error" },
    messages: { type: "overloaded_error" },
    gemini: { status: 503 },
  },
];

/** What a client got of a stream. */
interface Got {
  text: string;
  error: unknown;
}

/** Prepares the world for a stream, and reads its texts up to the error of the client; undefined without one. */
async function readBroken(
  { what, breakage, stops }: Broken,
  open: (address: { readonly url: string; readonly key: string }) => AsyncIterable<string>,
): Promise<Got> {
  await world.prepare({ name: what, upstream: { alpha: [begins("Hel", breakage)] }, expected: { answer: {} } });
  const got: Got = { text: "", error: undefined };
  const url = `http://127.0.0.1:${world.gateway.httpPort}`;
  try {
    for await (const text of open({ url, key: world.gateway.key })) {
      got.text += text;
      if (stops === true && text !== "") world.gateway.abort();
    }
  } catch (error) {
    got.error = error;
  }
  return got;
}

describe.each(BROKEN)("a stream $what", (broken) => {
  // The clients keep connections, and might send a request on one that the gateway is closing after a broken stream.
  const headers = { ...broken.headers, connection: "close" };

  it("makes the openai client throw, of a chat completion", async () => {
    const got = await readBroken(broken, async function* ({ url, key }) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, defaultHeaders: headers });
      const messages = [{ role: "user", content: "Hello?" }] as const;
      const stream = await client.chat.completions.create({ model: "alpha", messages: [...messages], stream: true });
      for await (const { choices } of stream) yield choices[0]?.delta.content ?? "";
    });
    expect(got).toMatchObject({ text: "Hel", error: broken.chat });
    expect(got.error).toBeInstanceOf(OpenAI.APIError);
  });

  it("is a failed response to the openai client, whose class of response has no errors to throw", async () => {
    let response: OpenAI.Responses.Response | undefined;
    const got = await readBroken(broken, async function* ({ url, key }) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, defaultHeaders: headers });
      const stream = client.responses.stream({ model: "alpha", input: "Hello?" });
      for await (const event of stream) {
        expect(event.type).not.toMatch(/^response\.(?:completed|incomplete)$/);
        yield event.type === "response.output_text.delta" ? event.delta : "";
      }
      response = await stream.finalResponse();
    });
    expect(got).toEqual({ text: "Hel", error: undefined });
    expect(response).toMatchObject({ status: "failed", error: broken.responses, output_text: "Hel" });
  });

  it("makes the @anthropic-ai/sdk client throw", async () => {
    const got = await readBroken(broken, async function* ({ url, key }) {
      const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, defaultHeaders: headers });
      const messages = [{ role: "user", content: "Hello?" }] as const;
      const stream = await client.messages.create({
        model: "alpha",
        max_tokens: 100,
        messages: [...messages],
        stream: true,
      });
      for await (const event of stream) {
        expect(event.type).not.toBe("message_stop");
        yield event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : "";
      }
    });
    expect(got).toMatchObject({ text: "Hel", error: broken.messages });
    expect(got.error).toBeInstanceOf(Anthropic.APIError);
  });

  it("makes the @google/genai client throw", async () => {
    const got = await readBroken(broken, async function* ({ url, key }) {
      const client = new GoogleGenAI({ apiKey: key, vertexai: false, httpOptions: { baseUrl: url, headers } });
      const stream = await client.models.generateContentStream({ model: "alpha", contents: "Hello?" });
      for await (const piece of stream) {
        expect(piece.candidates?.[0]?.finishReason).toBeUndefined();
        yield piece.text ?? "";
      }
    });
    expect(got).toMatchObject({ text: "Hel", error: broken.gemini });
    expect(got.error).toBeInstanceOf(ApiError);
  });
});
