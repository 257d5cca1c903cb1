import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestFront, type TestFront } from "../support/front.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerJson, beginStream, startUpstream, type Upstream } from "./support/upstream.ts";

/* Pictures while they are being made, of a provider that sends them. */

type Json = Readonly<Record<string, unknown>>;

/** Larger than a message over gRPC may be. */
const PARTIAL = Buffer.alloc(5 * 1024 * 1024, 7).toString("base64");
const PNG = "iVBORw0KGgo=";
const ITEM = { id: "ig_up", type: "image_generation_call", status: "completed", result: PNG, output_format: "webp" };
const USAGE = {
  input_tokens: 10,
  output_tokens: 5,
  total_tokens: 15,
};
const RESPONSE = {
  status: "completed",
  output: [ITEM],
  usage: USAGE,
  tool_usage: { image_gen: { input_tokens: 3, output_tokens: 400, total_tokens: 403 } },
};

let upstream: Upstream;
let gateway: TestGateway;
let front: TestFront;

beforeAll(async () => {
  upstream = await startUpstream(({ request, response, body }) => {
    const asked = JSON.parse(body) as { stream?: boolean; tools?: { partial_images?: number }[] };
    if (!request.url!.endsWith("/responses")) {
      const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
      return answerJson(response, 200, {
        choices: [{ index: 0, message: { images: [image] }, finish_reason: "stop" }],
      });
    }
    if (asked.stream !== true) return answerJson(response, 200, RESPONSE);
    const count = asked.tools?.at(-1)?.partial_images ?? 0;
    const place = { item_id: "ig_up", output_index: 0 };
    const partials = Array.from({ length: count }, (_, index) => ({
      type: "response.image_generation_call.partial_image",
      ...place,
      partial_image_index: index,
      partial_image_b64: index === 0 ? PARTIAL : PNG,
      output_format: "webp",
    }));
    const events = [
      { type: "response.created", response: { status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...ITEM, status: "in_progress", result: null } },
      { type: "response.image_generation_call.in_progress", ...place },
      { type: "response.image_generation_call.generating", ...place },
      ...partials,
      { type: "response.image_generation_call.completed", ...place },
      { type: "response.output_item.done", output_index: 0, item: ITEM },
      { type: "response.completed", response: RESPONSE },
    ];
    beginStream(response);
    for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  const at = { allow_private: true, api_keys: ["credential"], base_url: `${upstream.url}/v1` };
  const model = {
    upstream_model: "any",
    max_output_tokens: 4_000,
    modalities: { input: ["text", "image"], output: ["text", "image"] },
    price: { input: 1, output: 1, image_output: 10 },
  };
  gateway = await startTestGateway({
    config: {
      limits: UNLIMITED,
      providers: { r: { ...at, dialect: "openai-responses" }, o: { ...at, dialect: "openai" } },
      models: { "fx-r": { ...model, provider: "r" }, "fx-o": { ...model, provider: "o" } },
    },
  });
  front = await startTestFront(`127.0.0.1:${gateway.grpcPort}`);
});

afterAll(async () => {
  await front.close();
  await gateway.close();
  await upstream.close();
});

const lastAsked = (): { readonly tools?: readonly Json[] } =>
  JSON.parse(upstream.exchanges.at(-1)!.body) as { readonly tools?: readonly Json[] };

describe.each(["directly", "through a front"])("a picture in the making, %s", (way) => {
  const client = (): OpenAI => {
    const { httpPort } = way === "directly" ? gateway : front;
    return new OpenAI({ baseURL: `http://127.0.0.1:${httpPort}/v1`, apiKey: gateway.key, maxRetries: 0 });
  };

  it("is an event of a stream of pictures", async () => {
    const asked = { model: "fx-r", prompt: "A tide.", stream: true, partial_images: 2 } as const;
    const events = [];
    for await (const event of await client().images.generate(asked)) events.push(event);
    expect(lastAsked().tools).toEqual([{ type: "image_generation", partial_images: 2 }]);
    expect(events).toMatchObject([
      { type: "image_generation.partial_image", partial_image_index: 0, output_format: "webp" },
      { type: "image_generation.partial_image", partial_image_index: 1, b64_json: PNG },
      { type: "image_generation.completed", b64_json: PNG, usage: { output_tokens: 405 } },
    ]);
    expect((events[0] as { b64_json: string }).b64_json).toBe(PARTIAL);
  });

  it("is an event of the Responses API, within its item", async () => {
    const tools = [{ type: "image_generation" as const, partial_images: 2 }];
    const stream = client().responses.stream({ model: "fx-r", input: "A tide.", tools });
    const events: Json[] = [];
    for await (const event of stream) events.push(event as unknown as Json);
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([{ type: "image_generation_call", status: "completed", result: PNG }]);
    const types = events.map(({ type }) => String(type).replace("response.", ""));
    expect(types).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "image_generation_call.in_progress",
      "image_generation_call.generating",
      "image_generation_call.partial_image",
      "image_generation_call.partial_image",
      "image_generation_call.completed",
      ...types.slice(8, -1),
      "completed",
    ]);
    expect(types.slice(8)).toContain("output_item.done");
    expect(events[5]).toMatchObject({ output_index: 0, partial_image_index: 0, partial_image_b64: PARTIAL });
    expect(events[6]).toMatchObject({ item_id: (output[0] as { id: string }).id, partial_image_index: 1 });
  });
});

describe("pictures in the making", () => {
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify(body),
    });

  it("are not asked for without a stream", async () => {
    const response = await post("/v1/images/generations", { model: "fx-r", prompt: "A tide.", partial_images: 2 });
    expect([response.status, lastAsked().tools]).toEqual([200, [{ type: "image_generation" }]]);
  });

  it("are listed as omitted where a provider sends none", async () => {
    const body = { model: "fx-o", prompt: "A tide.", stream: true, partial_images: 2 };
    const text = await (await post("/v1/images/generations", body)).text();
    expect(text).toContain('"omitted":["partial_images"]');
    expect(text).not.toContain('partial_image"');
  });

  it.each([
    ["/v1/images/generations", { prompt: "A tide.", stream: true, partial_images: 4 }, "partial_images"],
    [
      "/v1/responses",
      { input: "A tide.", stream: true, tools: [{ type: "image_generation", partial_images: 4 }] },
      "tools[0].partial_images",
    ],
  ])("are at most three of a picture (%s)", async (path, fields, param) => {
    const response = await post(path, { model: "fx-r", ...fields });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
  });
});
