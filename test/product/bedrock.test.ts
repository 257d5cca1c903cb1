import { AnthropicBedrock } from "@anthropic-ai/bedrock-sdk";
import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
  ThrottlingException,
} from "@aws-sdk/client-bedrock-runtime";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type BedrockServer, startBedrock } from "../support/bedrock/server.ts";
import { type Product, runProduct, startProduct } from "../support/product.ts";
import { postJson } from "../support/post-json.ts";

const KEYS = { accessKeyId: "AKIDEXAMPLE00001", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const API_KEY = "bedrock-api-key-of-this-test";
const REGION = "eu-central-1";
const CLAUDE = "eu.anthropic.claude-haiku-4-5-20251001-v1:0";
const PROFILE = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/ab12cd34";
const ENV = {
  AWS_ACCESS_KEY_ID: KEYS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
  AWS_EC2_METADATA_DISABLED: "true",
};

let bedrock: BedrockServer;
let product: Product;

/** The configuration of the page for operators, at this server, with further models. */
function configOf(): { providers: object; models: object } {
  const page = readFileSync(join(import.meta.dirname, "../../docs/providers/bedrock.md"), "utf8");
  const { providers, models } = parse(/```yaml\n([^]*?)```/.exec(page)![1]!) as Record<string, Record<string, object>>;
  const at = { base_url: bedrock.url, allow_private: true };
  const documented = Object.entries(providers!).map(([name, provider]) => [name, { ...provider, ...at }]);
  const { bedrock: converse } = Object.fromEntries(documented) as Record<string, object>;
  return {
    providers: { ...Object.fromEntries(documented), keyed: { ...converse, api_keys: [API_KEY] } },
    models: {
      ...models,
      profile: { provider: "bedrock", upstream_model: PROFILE, max_output_tokens: 4096 },
      keyed: { provider: "keyed", upstream_model: "qwen.qwen3-32b-v1:0" },
      unknown: { provider: "bedrock", upstream_model: "amazon.unknown-v1:0" },
    },
  };
}

beforeAll(async () => {
  bedrock = await startBedrock({ keys: [KEYS], region: REGION, apiKeys: [API_KEY] });
  product = await startProduct({ config: configOf(), env: ENV });
});
afterAll(async () => {
  await product?.stop();
  await bedrock.close();
});

const TOOL = { name: "weather", description: "The weather.", parameters: { type: "object", properties: {} } };

async function post(path: string, body: object): Promise<Response> {
  return postJson(`${product.url}${path}`, product.firstKey, body);
}

/** Of a chat completion, or of a chunk of one, what the tests look at. */
interface Answer {
  readonly choices: readonly {
    readonly message: Said;
    readonly delta?: Partial<Said>;
    readonly finish_reason: string;
  }[];
  readonly parley: { readonly attempts: readonly { readonly model: string }[] };
}

interface Said {
  readonly content: string;
  readonly tool_calls: readonly { readonly id: string; readonly function?: { readonly arguments?: string } }[];
}

async function chat(model: string, content: string, more: object = {}) {
  const response = await post("/v1/chat/completions", { model, messages: [{ role: "user", content }], ...more });
  return { status: response.status, json: (await response.json()) as Answer };
}

/** The chunks of a chat stream. */
async function chatStream(model: string, content: string, more: object = {}): Promise<Answer[]> {
  const stream_options = { include_usage: true };
  const body = { model, messages: [{ role: "user", content }], stream: true, stream_options, ...more };
  const text = await (await post("/v1/chat/completions", body)).text();
  const events = text.split("\n\n").filter((event) => event.startsWith("data: {"));
  return events.map((event) => JSON.parse(event.slice("data: ".length)) as Answer);
}

describe.each([
  ["InvokeModel", "haiku", ["invoke", "invoke-with-response-stream"], CLAUDE],
  ["Converse", "nova", ["converse", "converse-stream"], "eu.amazon.nova-lite-v1:0"],
  ["Converse on an ARN", "profile", ["converse", "converse-stream"], PROFILE],
  ["Converse with an API key", "keyed", ["converse", "converse-stream"], "qwen.qwen3-32b-v1:0"],
  ["Converse on a model that reasons", "oss", ["converse", "converse-stream"], "openai.gpt-oss-120b-1:0"],
])("a model of Bedrock by %s", (_, model, operations, upstreamModel) => {
  it("answers a chat completion, whole and streamed", async () => {
    const { status, json } = await chat(model, "hello");
    expect(json, String(status)).toMatchObject({
      choices: [{ message: { content: "You said hello" }, finish_reason: "stop", native_finish_reason: "end_turn" }],
      usage: { prompt_tokens: 12, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 5 } },
    });
    const chunks = await chatStream(model, "hello");
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? "").join("")).toBe("You said hello");
    expect(chunks.at(-1)).toMatchObject({ usage: { prompt_tokens: 12, completion_tokens: 3 } });
    const asked = bedrock.requests.slice(-2);
    expect(asked.map(({ operation }) => operation)).toEqual(operations);
    expect(asked.map((request) => request.model)).toEqual([upstreamModel, upstreamModel]);
  });

  it("calls a tool, whole and streamed, and takes its result", async () => {
    const tools = [{ type: "function", function: TOOL }];
    const { json } = await chat(model, "call", { tools });
    const { message, finish_reason } = json.choices[0]!;
    expect(finish_reason).toBe("tool_calls");
    expect(message.tool_calls).toMatchObject([{ function: { name: "weather", arguments: '{"city":"Bern"}' } }]);
    const chunks = await chatStream(model, "call", { tools });
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta?.tool_calls ?? []);
    expect(calls.map((call) => call.function?.arguments ?? "").join("")).toBe('{"city":"Bern"}');
    const result = { role: "tool", tool_call_id: message.tool_calls[0]!.id, content: "sunny" };
    const messages = [{ role: "user", content: "call" }, message, result];
    const response = await post("/v1/chat/completions", { model, tools, messages });
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "You said result: sunny" } }] });
  });

  it("answers the Messages format, whole and streamed", async () => {
    const body = { model, max_tokens: 100, messages: [{ role: "user", content: "hello" }] };
    const whole = await post("/v1/messages", body);
    expect(await whole.json()).toMatchObject({
      content: [{ type: "text", text: "You said hello" }],
      usage: { input_tokens: 7 },
    });
    const streamed = await (await post("/v1/messages", { ...body, stream: true })).text();
    const deltas = [...streamed.matchAll(/"text_delta","text":"([^"]*)"/g)].map(([, text]) => text);
    expect(deltas.join("")).toBe("You said hello");
    expect(streamed).toContain("event: message_stop");
  });

  it("falls back when it is throttled", async () => {
    const other = model === "nova" ? "haiku" : "nova";
    const { json } = await chat(model, `throttle ${upstreamModel}`, { fallback_models: [other] });
    expect(json.choices[0]!.message.content).toBe(`You said throttle ${upstreamModel}`);
    const { attempts } = json.parley;
    expect(attempts[0]).toMatchObject({ model, outcome: "upstream_rate_limited", upstream_status: 429 });
    expect(attempts.at(-1)).toMatchObject({ model: other, outcome: "served" });
  });

  it("reports a stream that an exception breaks", async () => {
    const chunks = await chatStream(model, "break");
    expect(chunks.at(-1)).toMatchObject({ error: { message: expect.stringMatching(/failed/) as string } });
  });
});

describe("what Bedrock is asked with", () => {
  it("is the version and the known betas in the body of InvokeModel", async () => {
    await fetch(`${product.url}/v1/messages`, {
      method: "POST",
      headers: {
        "x-api-key": product.firstKey,
        "anthropic-beta": "context-1m-2025-08-07,prompt-caching-scope-2026-01-05",
        "content-type": "application/json",
      },
      body: JSON.stringify({
        model: "haiku",
        max_tokens: 9,
        metadata: { user_id: "u" },
        messages: [{ role: "user", content: "hello" }],
      }),
    });
    const { body, headers } = bedrock.requests.at(-1)!;
    expect(body).toEqual({
      anthropic_version: "bedrock-2023-05-31",
      anthropic_beta: ["context-1m-2025-08-07"],
      max_tokens: 9,
      messages: [{ role: "user", content: "hello" }],
    });
    expect(headers["anthropic-beta"]).toBeUndefined();
  });

  it("counts tokens of the foundation model", async () => {
    const body = { model: "haiku", messages: [{ role: "user", content: "hello" }] };
    expect(await (await post("/v1/messages/count_tokens", body)).json()).toEqual({ input_tokens: 42 });
    const asked = bedrock.requests.at(-1)!;
    expect(asked.model).toBe("anthropic.claude-haiku-4-5-20251001-v1:0");
    const { invokeModel } = asked.body["input"] as { invokeModel: { body: string } };
    expect(JSON.parse(Buffer.from(invokeModel.body, "base64").toString())).toMatchObject({
      anthropic_version: "bedrock-2023-05-31",
      max_tokens: 1,
    });
  });
});

describe("the makers' clients, at the same server", () => {
  const client = () =>
    new BedrockRuntimeClient({
      region: REGION,
      endpoint: bedrock.url,
      credentials: KEYS,
      maxAttempts: 1,
      // By default it speaks HTTP/2, which Bedrock has beside HTTP/1.1.
      requestHandler: new NodeHttpHandler(),
    });
  const messages = [{ role: "user" as const, content: [{ text: "call" }] }];
  const toolConfig = { tools: [{ toolSpec: { name: "weather", inputSchema: { json: { type: "object" } } } }] };

  it("agree with Parley about paths, headers and bodies of Converse", async () => {
    const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
    await chat("profile", "call", { tools, max_tokens: 100 });
    const ours = bedrock.requests.at(-1)!;
    const answer = await client().send(
      new ConverseCommand({ modelId: PROFILE, messages, toolConfig, inferenceConfig: { maxTokens: 100 } }),
    );
    const theirs = bedrock.requests.at(-1)!;
    expect([ours.path, ours.body]).toEqual([theirs.path, theirs.body]);
    expect(ours.headers["content-type"]).toBe(theirs.headers["content-type"]);
    expect(answer.output?.message?.content?.[1]?.toolUse?.input).toEqual({ city: "Bern" });
  });

  it("read the server's streams, counts and errors", async () => {
    const { stream } = await client().send(new ConverseStreamCommand({ modelId: "m", messages }));
    const texts: string[] = [];
    let usage;
    for await (const event of stream!) {
      texts.push(event.contentBlockDelta?.delta?.text ?? "");
      usage = event.metadata?.usage ?? usage;
    }
    expect(texts.join("")).toBe("You said call");
    expect(usage).toMatchObject({ inputTokens: 7, outputTokens: 3 });
    const counted = await client().send(new CountTokensCommand({ modelId: "m", input: { converse: { messages } } }));
    expect(counted.inputTokens).toBe(42);
    const throttled = [{ role: "user" as const, content: [{ text: "throttle m" }] }];
    await expect(client().send(new ConverseCommand({ modelId: "m", messages: throttled }))).rejects.toThrow(
      ThrottlingException,
    );
  });

  it("agree with Parley about InvokeModel, whole and streamed", async () => {
    await chat("haiku", "hello", { max_tokens: 100 });
    const ours = bedrock.requests.at(-1)!;
    const sdk = new AnthropicBedrock({
      awsRegion: REGION,
      awsAccessKey: KEYS.accessKeyId,
      awsSecretKey: KEYS.secretAccessKey,
      baseURL: bedrock.url,
      maxRetries: 0,
    });
    const asked = { model: CLAUDE, max_tokens: 100, messages: [{ role: "user" as const, content: "hello" }] };
    const answer = await sdk.messages.create(asked);
    const theirs = bedrock.requests.at(-1)!;
    expect(decodeURIComponent(ours.path)).toBe(decodeURIComponent(theirs.path));
    // Theirs names the version of the client.
    const version = { anthropic_version: expect.any(String) as string };
    const toBlocks = [{ role: "user", content: [{ type: "text", text: "hello" }] }];
    expect(ours.body).toEqual({ ...theirs.body, ...version, messages: toBlocks });
    expect(answer.content).toMatchObject([{ text: "You said hello" }]);
    const streamed = await sdk.messages.stream(asked).finalMessage();
    expect(streamed.content).toMatchObject([{ text: "You said hello" }]);
    const invoked = await client().send(
      new InvokeModelCommand({ modelId: CLAUDE, contentType: "application/json", body: JSON.stringify(theirs.body) }),
    );
    expect(bedrock.requests.at(-1)!.path).toBe(ours.path);
    expect(JSON.parse(new TextDecoder().decode(invoked.body))).toMatchObject({ id: "msg_bdrk_1" });
  });
});

describe("parley providers test", () => {
  const test = async (provider: string, model: string, env: Record<string, string> = ENV) => {
    const run = runProduct(["providers", "test", provider, "--model", model], { ...product, env });
    const { code } = await run.ending;
    return { code, text: run.output.stdout + run.output.stderr };
  };

  it("says that it works", async () => {
    expect(await test("bedrock", "nova")).toMatchObject({ code: 0 });
  });

  it("says what is wrong: no credentials, wrong ones, an unknown model", async () => {
    const without = await test("bedrock", "nova", { AWS_EC2_METADATA_DISABLED: "true" });
    expect(without.text).toMatch(/no AWS credentials.*Could not load credentials.*AWS_PROFILE/);
    const wrong = await test("bedrock", "nova", { ...ENV, AWS_SECRET_ACCESS_KEY: "another-secret-of-someone" });
    expect(wrong.text).toMatch(/HTTP 403[^]*its region and this machine's clock/);
    expect(wrong.text).not.toContain("another-secret-of-someone");
    const unknown = await test("bedrock", "unknown");
    expect(unknown.text).toMatch(/HTTP 400[^]*inference profile/);
  });
});
