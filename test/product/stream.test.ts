import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text as readText } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import {
  answerText,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  gateway = await startTestGateway({ config: { simulator: { enabled: false }, ...localModel(upstream.url) } });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const ask = (fields: object): Promise<Response> =>
  postChat(`http://127.0.0.1:${gateway.httpPort}`, gateway.key, { model: "local/test", ...fields });

/** Asks over an agent's connections; the whole answer, and our port of the connection that it came on. */
async function askOver(agent: Agent, fields: object) {
  const asked = request(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
    agent,
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
  });
  asked.end(JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }], ...fields }));
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  const port = response.socket.localPort;
  return { text: await readText(response), port, connection: response.headers.connection };
}

/** A chunk of an upstream that gives each of them an ID, a time in milliseconds and its own name of the model. */
const restless = (at: number, choices: object[]): string =>
  `data: ${JSON.stringify({ id: `gen-${at}`, created: 1_780_000_000_000 + at, model: "test-2026", choices })}\n\n`;
const said = (content: string): object[] => [{ index: 0, delta: { content }, finish_reason: null }];

interface Identity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

function identitiesOf(stream: string): Identity[] {
  const events = stream.split("\n\n").filter((event) => event.startsWith("data: {"));
  return events.map((event) => JSON.parse(event.slice("data: ".length)) as Identity);
}

describe("a stream", () => {
  it("trap 13: disables buffering in proxies, and sends its first content before the upstream has finished", async () => {
    let finish = (): void => undefined;
    answer = ({ response }) => {
      beginStream(response);
      response.write(restless(1, said("first")));
      finish = () => void response.end(END_EVENTS);
    };
    const response = await ask({ stream: true });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("first")) text += (await reader.read()).value;
    expect(text).not.toContain("[DONE]");
    finish();
    for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
  });

  it("that fails leaves its connection for one more request, also after a while", async () => {
    answer = (exchange) => {
      if (!exchange.body.includes('"stream":true')) return answerText(exchange, "Served.");
      beginStream(exchange.response);
      exchange.response.end(textEvent("Hel"));
    };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const failed = await askOver(agent, { stream: true });
    expect(failed.text).toContain("upstream_invalid_response");
    expect(failed.text).not.toContain("[DONE]");
    await delay(1_500);
    const next = await askOver(agent, {});
    expect(next).toMatchObject({ port: failed.port, connection: "close" });
    expect(next.text).toContain("Served.");
  });

  it("traps 90 and 91: has one ID, one time in seconds and the model's public name, whatever the upstream sends", async () => {
    answer = ({ response }) => {
      beginStream(response);
      response.end(restless(1, said("a")) + restless(2, said("b")) + END_EVENTS);
    };
    const beganS = Math.floor(Date.now() / 1000);
    const text = await (await ask({ stream: true })).text();
    const [first, ...others] = identitiesOf(text);
    expect(others.length).toBeGreaterThanOrEqual(3);
    expect(first?.id).toMatch(/^chatcmpl-/);
    expect(first?.model).toBe("local/test");
    expect(first?.created).toBeGreaterThanOrEqual(beganS);
    expect(first?.created).toBeLessThanOrEqual(Date.now() / 1000);
    for (const { id, created, model } of others)
      expect({ id, created, model }).toEqual({ id: first?.id, created: first?.created, model: first?.model });
    expect(text).not.toContain("test-2026");
  });
});

interface PicturesDelta {
  readonly images?: readonly { readonly index: number; readonly image_url: { readonly url: string } }[];
}

describe("the stream helper of the openai client", () => {
  it("trap 85: gets every picture in a separate chunk, although the helper assembles only known fields", async () => {
    const urls = ["AAAA", "BBBB"].map((data) => `data:image/png;base64,${data}`);
    const pictures = urls.map((url) => ({ images: [{ type: "image_url", image_url: { url } }] }));
    answer = ({ response }) => {
      beginStream(response);
      for (const delta of pictures) response.write(restless(1, [{ index: 0, delta, finish_reason: null }]));
      response.end(END_EVENTS);
    };
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `http://127.0.0.1:${gateway.httpPort}/v1` });
    const helper = client.chat.completions.stream({
      model: "local/test",
      messages: [{ role: "user", content: "Draw twice" }],
    });
    const seen: (readonly [number, string])[] = [];
    helper.on("chunk", ({ choices }) => {
      const { images = [] } = (choices[0]?.delta ?? {}) as PicturesDelta;
      seen.push(...images.map(({ index, image_url }) => [index, image_url.url] as const));
    });
    await helper.done();
    expect(seen).toEqual(urls.map((url, index) => [index, url]));
  });
});

describe("a whole answer", () => {
  it("traps 90 and 91: has an ID and a time in seconds of its own, and the model's public name", async () => {
    const choice = { index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" };
    const body = { id: "gen-1", created: 1_780_000_000_000, model: "test-2026", choices: [choice] };
    answer = ({ response }) =>
      void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    const response = await ask({});
    const text = await response.text();
    const { id, created, model } = JSON.parse(text) as Identity;
    expect(id).toMatch(/^chatcmpl-/);
    expect(created).toBeLessThanOrEqual(Date.now() / 1000);
    expect(model).toBe("local/test");
    expect(text + JSON.stringify([...response.headers])).not.toContain("test-2026");
  });
});
