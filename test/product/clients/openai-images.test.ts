import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../../support/product.ts";
import { cleanEnvironment } from "../support/clean-environment.ts";
import { answerJson, startUpstream, type Upstream } from "../support/upstream.ts";
import { rejectionsOf } from "../../support/errors.ts";

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

const errorOf = rejectionsOf<InstanceType<typeof OpenAI.APIError>>(OpenAI.APIError);

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

describe("the openai client's edits of pictures", () => {
  const png = (name = "a.png") => toFile(Buffer.from(PNG, "base64"), name, { type: "image/png" });
  const shown = { inlineData: { mimeType: "image/png", data: PNG } };
  const lastMessage = (): unknown =>
    (JSON.parse(upstream.exchanges.at(-1)!.body) as { contents: unknown[] }).contents.at(-1);

  it("are made of one picture", async () => {
    const made = await images().edit({
      model: "painter",
      image: await png(),
      prompt: "Add a hat",
      size: "1024x1536",
      n: 1,
      input_fidelity: "high",
    });
    expect(made).toMatchObject({
      data: [{ b64_json: PNG }],
      output_format: "png",
      usage: { total_tokens: 1124 },
      parley: { omitted: ["input_fidelity"] },
    });
    expect(lastMessage()).toMatchObject({ role: "user", parts: [shown, { text: "Add a hat" }] });
    expect(JSON.parse(upstream.exchanges.at(-1)!.body)).toMatchObject({
      generationConfig: { imageConfig: { aspectRatio: "2:3", imageSize: "1K" } },
    });
  });

  it("are made of several pictures and a mask, which is listed where the provider cannot take it", async () => {
    const image = await Promise.all([png("a.png"), png("b.png")]);
    const made = await images().edit({ model: "painter", image, mask: await png(), prompt: "Join them" });
    expect(made).toMatchObject({ data: [{ b64_json: PNG }], parley: { omitted: ["mask"] } });
    expect(lastMessage()).toMatchObject({ parts: [shown, shown, { text: "Join them" }] });
  });

  it("are streamed", async () => {
    const stream = await images().edit({ model: "painter", image: await png(), prompt: "Add a hat", stream: true });
    expect(await Array.fromAsync(stream)).toMatchObject([
      { type: "image_edit.completed", b64_json: PNG, output_format: "png", usage: { total_tokens: 1124 } },
    ]);
  });

  it("may be JSON", async () => {
    const picture = { image_url: `data:image/png;base64,${PNG}` };
    const body = { model: "painter", prompt: "Add a hat", images: [picture], mask: picture };
    const client = new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey });
    expect(await client.post("/images/edits", { body })).toMatchObject({
      data: [{ b64_json: PNG }],
      parley: { omitted: ["mask"] },
    });
    expect(lastMessage()).toMatchObject({ parts: [shown, { text: "Add a hat" }] });
  });

  it("fail with the name of the field", async () => {
    const text = await toFile(Buffer.from("hello"), "a.txt", { type: "text/plain" });
    const wrong = await errorOf(images().edit({ model: "painter", image: [await png(), text], prompt: "Join them" }));
    expect(wrong).toBeInstanceOf(OpenAI.BadRequestError);
    expect(wrong).toMatchObject({ param: "image[1]", message: expect.stringContaining("PNG, JPEG") as unknown });
    const words = await errorOf(images().edit({ model: "writer", image: await png(), prompt: "Add a hat" }));
    expect(words).toMatchObject({ status: 400, message: expect.stringContaining("does not make pictures") as unknown });
  });
});

describe("a form", () => {
  const send = async (path: string, body: string | FormData, type?: string): Promise<unknown> => {
    const response = await fetch(`${product.url}/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${product.firstKey}`, ...(type !== undefined && { "content-type": type }) },
      body,
    });
    const { error } = (await response.json()) as { error: { message: string } };
    return [response.status, error.message];
  };

  it("is taken by no other route", async () => {
    for (const path of ["images/generations", "chat/completions", "responses", "embeddings", "messages"]) {
      const form = new FormData();
      form.append("model", "painter");
      expect(await send(path, form), path).toEqual([
        400,
        'The content-type header must be application/json: send "content-type: application/json".',
      ]);
    }
  });

  it("that cannot be read is refused with what is wrong", async () => {
    expect(await send("images/edits", "model=painter", "application/x-www-form-urlencoded")).toEqual([
      400,
      "The content-type header must be multipart/form-data with a boundary, or application/json.",
    ]);
    const cut = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\npainter';
    expect(await send("images/edits", cut, "multipart/form-data; boundary=b")).toEqual([
      400,
      expect.stringContaining("is not valid multipart/form-data"),
    ]);
    expect(await send("images/edits", cut, "multipart/form-data")).toEqual([
      400,
      expect.stringContaining("must have a boundary"),
    ]);
  });

  it("is limited as every body is", async () => {
    const form = new FormData();
    form.append("image", new Blob([Buffer.alloc(33 * 1024 * 1024)]));
    expect(await send("images/edits", form)).toEqual([413, expect.stringContaining("larger than 32 MiB")]);
  });
});
