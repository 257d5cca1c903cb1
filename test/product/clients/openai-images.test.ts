import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../../support/product.ts";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { answerJson, startUpstream, type Upstream } from "../support/upstream.ts";

/** One pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const PICTURE = { inlineData: { mimeType: "image/png", data: PNG }, thoughtSignature: "c2ln" };

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream(({ request, body, response }) => {
    const blocked = body.includes("forbidden");
    const parts = body.includes("only words") ? [{ text: "No." }] : [{ text: "Here." }, PICTURE];
    const json = {
      candidates: [
        blocked
          ? { index: 0, finishReason: "IMAGE_SAFETY" }
          : { content: { role: "model", parts }, index: 0, finishReason: "STOP" },
      ],
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 1120, totalTokenCount: 1124 },
    };
    if (request.url?.includes("streamGenerateContent") !== true) return answerJson(response, 200, json);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify(json)}\n\n`);
  });
  product = await startProduct({
    config: {
      providers: { images: { dialect: "gemini", base_url: upstream.url, allow_private: true, api_keys: ["secret"] } },
      models: {
        painter: {
          provider: "images",
          upstream_model: "paint",
          modalities: { input: ["text", "image"], output: ["text", "image"] },
          capabilities: { image_options: true },
        },
        writer: { provider: "images", upstream_model: "write" },
      },
      retries: { base_ms: 1, cap_ms: 1 },
    },
  });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

beforeEach(cleanEnvironment);

function images(): OpenAI.Images {
  return new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey, maxRetries: 0 }).images;
}

async function errorOf(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error: unknown = await Promise.resolve(call).catch((reason: unknown) => reason);
  if (error instanceof OpenAI.APIError) return error;
  throw new Error("the call succeeded", { cause: error });
}

describe("the openai client's pictures", () => {
  it("are made whole", async () => {
    const made = await images().generate({ model: "painter", prompt: "A red dot", size: "1536x1024", quality: "high" });
    expect(made).toMatchObject({
      data: [{ b64_json: PNG }],
      output_format: "png",
      usage: { input_tokens: 4, input_tokens_details: { text_tokens: 4, image_tokens: 0 }, output_tokens: 1120 },
      parley: { omitted: ["quality"] },
    });
    expect(JSON.parse(upstream.exchanges.at(-1)!.body)).toMatchObject({
      contents: [{ role: "user", parts: [{ text: "A red dot" }] }],
      generationConfig: { imageConfig: { aspectRatio: "3:2", imageSize: "1K" } },
    });
  });

  it("are streamed", async () => {
    const events = await Array.fromAsync(await images().generate({ model: "painter", prompt: "A dot", stream: true }));
    expect(events).toMatchObject([
      { type: "image_generation.completed", b64_json: PNG, output_format: "png", usage: { total_tokens: 1124 } },
    ]);
  });

  it("fail with the client's own classes", async () => {
    const words = await errorOf(images().generate({ model: "writer", prompt: "A dot" }));
    expect(words).toBeInstanceOf(OpenAI.BadRequestError);
    const blocked = await errorOf(images().generate({ model: "painter", prompt: "forbidden" }));
    expect(blocked).toMatchObject({ status: 400, message: expect.stringContaining("content filter") as unknown });
    const none = await errorOf(images().generate({ model: "painter", prompt: "only words" }));
    expect(none).toMatchObject({ message: expect.stringContaining("has no picture") as unknown });
    const streamed = images().generate({ model: "painter", prompt: "only words", stream: true });
    await expect(streamed.then((stream) => Array.fromAsync(stream))).rejects.toThrow("has no picture");
  });
});
