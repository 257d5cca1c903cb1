import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import { MAX_BODY_BYTES } from "../../src/simulator/exchange.ts";
import { PIXEL } from "./support/png-reader.ts";
import { type DialectName, GEMINI_MODEL, HEADERS, openSimulator, post, REQUESTS } from "./support/simulators.ts";

const DIALECTS: readonly DialectName[] = ["anthropic", "gemini", "openai"];

const ERROR_SHAPE: Readonly<Record<DialectName, unknown>> = {
  anthropic: {
    type: "error",
    error: { type: expect.any(String), message: expect.any(String) },
    request_id: expect.stringMatching(/^req_/u),
  },
  gemini: {
    error: { code: expect.any(Number), message: expect.any(String), status: expect.stringMatching(/^[A-Z_]+$/u) },
  },
  openai: { error: { message: expect.any(String), type: expect.any(String), param: null } },
};

async function refusal(
  dialect: DialectName,
  change: Record<string, unknown>,
): Promise<{ status: number; text: string }> {
  const simulator = await openSimulator();
  const response = await post(simulator, { dialect, body: { ...REQUESTS[dialect].body, ...change } });
  return { status: response.status, text: await response.text() };
}

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const call = { type: "tool_use", id: "t1", name: "f", input: {} };
const result = { type: "tool_result", tool_use_id: "t1", content: "ok" };
const jpegNamedPng = { type: "image", source: { type: "base64", media_type: "image/jpeg", data: PIXEL } };

describe("validation in the Anthropic dialect", () => {
  it.each<[string, Record<string, unknown>, string]>([
    ["no max_tokens", { max_tokens: undefined }, "max_tokens: Field required"],
    ["too many max_tokens", { max_tokens: 100_000 }, "max_tokens: 100000 > 64000"],
    ["a temperature above 1", { temperature: 1.2 }, "temperature: Input should be less than or equal to 1"],
    ["temperature with top_p", { temperature: 1, top_p: 0.9 }, "cannot both be specified"],
    [
      "an unknown field in a block",
      { messages: [user([{ type: "text", text: "a", x: 1 }])] },
      "messages.0.content.0.x: Extra",
    ],
    [
      "a wrong role",
      { messages: [{ role: "tool", content: "a" }] },
      "messages.0.role: Input should be user, assistant",
    ],
    ["no messages", { messages: [] }, "at least one message is required"],
    ["an empty message", { messages: [user("")] }, "non-empty content"],
    [
      "an empty text block",
      { messages: [user([{ type: "text", text: "" }])] },
      "text content blocks must be non-empty",
    ],
    ["a blank stop sequence", { stop_sequences: [" "] }, "each stop sequence must contain non-whitespace"],
    ["a system message at the start", { messages: [{ role: "system", content: "a" }] }, "top-level 'system' parameter"],
    [
      "a prefill that ends in a space",
      { messages: [user("a"), assistant("b ")] },
      "cannot end with trailing whitespace",
    ],
    [
      "a call without a result",
      { messages: [user("a"), assistant([call]), user("b")] },
      "without `tool_result` blocks",
    ],
    ["a result without a call", { messages: [user([result])] }, "unexpected `tool_use_id`"],
    [
      "a result after text",
      { messages: [user("a"), assistant([call]), user([{ type: "text", text: "b" }, result])] },
      "tool_result",
    ],
    ["an image of another type", { messages: [user([jpegNamedPng])] }, "appears to be a image/png image"],
    ["a forced tool without tools", { tool_choice: { type: "any" } }, "only be specified while providing tools"],
    [
      "a thinking budget above the token limit",
      { thinking: { type: "enabled", budget_tokens: 5000 } },
      "greater than `thinking",
    ],
    [
      "a prompt longer than the context",
      { messages: [user("a".repeat(900_000))] },
      "prompt is too long: 225003 tokens",
    ],
  ])("rejects %s", async (_, change, message) => {
    const { status, text } = await refusal("anthropic", change);
    expect(status).toBe(400);
    expect((JSON.parse(text) as { error: { message: string } }).error.message).toContain(message);
  });

  it("requires a known version", async () => {
    const simulator = await openSimulator();
    const missing = await post(simulator, { dialect: "anthropic", headers: { "anthropic-version": "" } });
    expect(await missing.text()).toContain("anthropic-version: header is required");
    const unknown = await post(simulator, { dialect: "anthropic", headers: { "anthropic-version": "1999-01-01" } });
    expect(await unknown.text()).toContain("is not a valid version");
  });

  it("accepts a temperature in the old version, but not in the new one", async () => {
    const simulator = await openSimulator();
    const body = { ...REQUESTS.anthropic.body, temperature: 0.5 };
    expect((await post(simulator, { dialect: "anthropic", body })).status).toBe(200);
    const headers = { "anthropic-version": "2026-10-21" };
    const response = await post(simulator, { dialect: "anthropic", body, headers });
    expect(await response.text()).toContain("temperature: Extra inputs are not permitted");
  });

  it("accepts a credential in either header", async () => {
    const simulator = await openSimulator();
    const headers = { "x-api-key": "", authorization: "Bearer any" };
    expect((await post(simulator, { dialect: "anthropic", headers })).status).toBe(200);
  });
});

const contents = (...parts: unknown[]) => [{ role: "user", parts }];

describe("validation in the Gemini dialect", () => {
  it.each<[string, Record<string, unknown>, string]>([
    ["an unknown field", { seed: 1 }, 'Unknown name "seed": Cannot find field.'],
    ["an unknown nested field", { generationConfig: { n: 1 } }, `Unknown name "n" at 'generation_config'`],
    ["no contents", { contents: [] }, "contents is not specified"],
    ["an empty part", { contents: contents({}) }, "required oneof field 'data' must have one initialized field"],
    ["no parts", { contents: contents() }, "contents.parts must not be empty"],
    [
      "two data fields in a part",
      { contents: contents({ text: "a", functionCall: { name: "f" } }) },
      "oneof field 'data'",
    ],
    [
      "a wrong type",
      { contents: contents({ text: 1 }) },
      "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 1",
    ],
    ["a wrong role", { contents: [{ role: "assistant", parts: [{ text: "a" }] }] }, "valid role: user, model"],
    [
      "six stop sequences",
      { generationConfig: { stopSequences: ["a", "b", "c", "d", "e", "f"] } },
      "at most 5 stop sequences",
    ],
    ["two candidates", { generationConfig: { candidateCount: 2 } }, "Multiple candidates"],
    [
      "an unsupported aspect ratio",
      { generationConfig: { imageConfig: { aspectRatio: "7:3" } } },
      "aspect_ratio must be one of",
    ],
    [
      "an unsupported image size",
      { generationConfig: { imageConfig: { imageSize: "1k" } } },
      "image_size must be one of",
    ],
    ["a schema without a JSON media type", { generationConfig: { responseJsonSchema: {} } }, "response_mime_type"],
    [
      "allowed function names in mode AUTO",
      { toolConfig: { functionCallingConfig: { mode: "AUTO", allowedFunctionNames: ["f"] } } },
      "ANY",
    ],
    [
      "a keyword outside the OpenAPI subset",
      {
        tools: [{ functionDeclarations: [{ name: "f", parameters: { type: "object", additionalProperties: false } }] }],
      },
      'Unknown name "additionalProperties"',
    ],
    [
      "a call without its response",
      {
        contents: [
          ...contents({ text: "a" }),
          { role: "model", parts: [{ functionCall: { name: "f" } }] },
          ...contents({ text: "b" }),
        ],
      },
      "number of function response parts",
    ],
    [
      "a call without its signature",
      {
        contents: [
          ...contents({ text: "a" }),
          { role: "model", parts: [{ functionCall: { name: "f" } }] },
          ...contents({ functionResponse: { name: "f", response: {} } }),
        ],
      },
      "missing a thought_signature",
    ],
  ])("rejects %s", async (_, change, message) => {
    const { status, text } = await refusal("gemini", change);
    expect(status).toBe(400);
    expect((JSON.parse(text) as { error: { message: string } }).error.message).toContain(message);
  });

  it("accepts field names in snake case", async () => {
    const { status, text } = await refusal("gemini", {
      system_instruction: { parts: [{ text: "Be brief." }] },
      generation_config: { max_output_tokens: 2 },
    });
    expect(status).toBe(200);
    expect(text).toContain("MAX_TOKENS");
  });

  it("streams a JSON array without alt=sse", async () => {
    const simulator = await openSimulator();
    const response = await post(simulator, { dialect: "gemini", path: `${GEMINI_MODEL}:streamGenerateContent` });
    expect(response.headers.get("content-type")).toContain("application/json");
    const chunks = (await response.json()) as { candidates: { finishReason?: string }[] }[];
    expect(chunks.at(-1)?.candidates[0]?.finishReason).toBe("STOP");
  });

  it("uses the same line endings as the real API", async () => {
    const simulator = await openSimulator();
    const path = `${GEMINI_MODEL}:streamGenerateContent?alt=sse`;
    const text = await (await post(simulator, { dialect: "gemini", path })).text();
    expect(text.endsWith("\r\n\r\n")).toBe(true);
    expect(text.replaceAll("\r\n", "")).not.toContain("\n");
  });
});

const toolCall = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };

describe("validation in the OpenAI dialect", () => {
  it.each<[string, Record<string, unknown>, string, string]>([
    ["an unknown field", { colour: 1 }, "Unknown parameter: 'colour'.", "colour"],
    ["no model", { model: undefined }, "Missing required parameter: 'model'.", "model"],
    ["no messages", { messages: [] }, "empty array", "messages"],
    ["a temperature above 2", { temperature: 3 }, "expected a value <= 2", "temperature"],
    ["five stops", { stop: ["a", "b", "c", "d", "e"] }, "at most 4", "stop"],
    ["stream options without a stream", { stream_options: {} }, "only allowed when 'stream'", "stream_options"],
    [
      "an unanswered call",
      { messages: [{ role: "assistant", tool_calls: [toolCall] }] },
      "did not have response",
      "messages.[1].role",
    ],
    [
      "a tool message without a call",
      { messages: [{ role: "tool", tool_call_id: "x", content: "a" }] },
      "role 'tool'",
      "messages.[0].role",
    ],
    ["a wrong content", { messages: [user(1)] }, "Invalid type for 'messages[0].content'", "messages[0].content"],
    [
      "an invalid image",
      { messages: [user([{ type: "image_url", image_url: { url: "data:image/png;base64,aaaa" } }])] },
      "unsupported image",
      "messages[0].content[0].image_url",
    ],
  ])("rejects %s", async (_, change, message, param) => {
    const { status, text } = await refusal("openai", change);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ error: { message: expect.stringContaining(message) as unknown, param } });
  });
});

describe.each(DIALECTS)("an invalid request in the %s dialect", (dialect) => {
  it("is rejected without a credential", async () => {
    const simulator = await openSimulator();
    const credentials = Object.keys(HEADERS[dialect]).filter((name) => name !== "anthropic-version");
    const headers = Object.fromEntries(credentials.map((name) => [name, ""]));
    const response = await post(simulator, { dialect, headers });
    expect(response.status).toBe(dialect === "gemini" ? 403 : 401);
    expect(await response.json()).toMatchObject({ error: { message: expect.any(String) as unknown } });
  });

  it.each([
    ["is not JSON", Buffer.from('{"model":')],
    ["is not UTF-8", Buffer.from([0x22, 0xff, 0xfe, 0x22])],
    ["is empty", Buffer.alloc(0)],
  ])("is rejected if its body %s", async (_, body) => {
    const { url } = await openSimulator();
    const response = await fetch(url + REQUESTS[dialect].path, { method: "POST", headers: HEADERS[dialect], body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject(ERROR_SHAPE[dialect] as object);
  });

  it.each(["null", "[]", '"text"', "7"])("is rejected if its body is %s", async (json) => {
    const { url } = await openSimulator();
    const response = await fetch(url + REQUESTS[dialect].path, {
      method: "POST",
      headers: HEADERS[dialect],
      body: json,
    });
    expect(response.status).toBe(400);
  });

  it("is rejected with another method, and at an unknown path", async () => {
    const { url } = await openSimulator();
    const options = { headers: HEADERS[dialect] };
    expect((await fetch(url + REQUESTS[dialect].path, options)).status).toBe(405);
    const nowhere = await fetch(`${url}${dialect === "gemini" ? "/v1beta" : "/v1"}/nowhere`, options);
    expect(nowhere.status).toBe(404);
    expect(await nowhere.json()).toMatchObject(ERROR_SHAPE[dialect] as object);
  });

  it("is rejected without reading the body if its content-length is too large", async () => {
    const { port, requests } = await openSimulator();
    const { path } = REQUESTS[dialect];
    const headers = { ...HEADERS[dialect], "content-length": MAX_BODY_BYTES + 1 };
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest({ port, host: "127.0.0.1", method: "POST", path, headers }, (response) => {
        resolve(response.statusCode);
        request.destroy();
      });
      request.on("error", reject);
      request.flushHeaders();
    });
    expect(status).toBe(413);
    await expect.poll(() => requests.active).toBe(0);
  });
});

it("a very deeply nested body is rejected without a crash", async () => {
  const simulator = await openSimulator();
  const depth = 200_000;
  const response = await fetch(simulator.url + REQUESTS.gemini.path, {
    method: "POST",
    headers: HEADERS.gemini,
    body: `{"contents":${"[".repeat(depth)}${"]".repeat(depth)}}`,
  });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("nested too deeply");
});

describe("the journal", () => {
  it("records request, dialect and outcome", async () => {
    const simulator = await openSimulator();
    await (await post(simulator, { dialect: "openai" })).text();
    await (await post(simulator, { dialect: "gemini", headers: { "x-simulator-fault": "status=500" } })).text();
    await expect.poll(() => simulator.requests.active).toBe(0);
    expect(simulator.requests.recent).toEqual([
      {
        dialect: "openai",
        method: "POST",
        path: REQUESTS.openai.path,
        model: "gpt-5-mini",
        status: 200,
        outcome: "finished",
      },
      {
        dialect: "gemini",
        method: "POST",
        path: REQUESTS.gemini.path,
        model: "gemini-3-flash-preview",
        fault: "status=500",
        status: 500,
        outcome: "finished",
      },
    ]);
  });

  it("keeps only the latest 200 requests", async () => {
    const simulator = await openSimulator();
    for (let count = 0; count < 205; count += 1) await (await fetch(`${simulator.url}/v1/nowhere`)).text();
    expect(simulator.requests.seen).toBe(205);
    expect(simulator.requests.recent).toHaveLength(200);
  });
});
