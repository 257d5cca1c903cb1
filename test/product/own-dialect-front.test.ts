import { readdirSync, readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { startTestFront, type TestFront } from "../support/front.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { ANSWER, formatFixtureModels, GEMINI_ANSWER } from "./support/format-fixtures.ts";
import type { Json } from "./support/fixtures.ts";
import { answerJson, startUpstream, type Upstream } from "./support/upstream.ts";

/* What a provider gets through a front is, to the byte, what it gets without one. */

const FOLDER = new URL("../fixtures/formats/clients/", import.meta.url);
const RESPONSES_ANSWER = {
  status: "completed",
  output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "Hello." }] }],
  usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
};
const CHAT_ANSWER = {
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};

interface Recorded {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
}

/** Requests of real clients in the formats that are a dialect. */
const RECORDED = readdirSync(FOLDER)
  .filter((name) => name !== "omitted.json")
  .map((name) => [name, JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as Recorded] as const)
  .filter(([, { path }]) => /^\/v1\/(?:messages|responses|chat)|enerateContent|countTokens/.test(path));

const OWN = { messages: "fx-a", responses: "fx-r", models: "fx-g", completions: "fx-c" } as const;
const ownModel = (path: string): string =>
  OWN[/(messages|responses|models|completions)/.exec(path)![1] as keyof typeof OWN];

let upstream: Upstream;
let core: TestGateway;
let front: TestFront;

beforeAll(async () => {
  upstream = await startUpstream(({ request: { url = "" }, response }) => {
    if (/count_?tokens/i.test(url)) return answerJson(response, 200, { input_tokens: 7, totalTokens: 7 });
    if (url.endsWith("/responses")) return answerJson(response, 200, RESPONSES_ANSWER);
    if (url.endsWith("/completions")) return answerJson(response, 200, CHAT_ANSWER);
    answerJson(response, 200, url.startsWith("/v1beta/") ? GEMINI_ANSWER : ANSWER);
  });
  const { providers, models } = formatFixtureModels(upstream.url);
  const responses = { dialect: "openai-responses", base_url: `${upstream.url}/v1` };
  core = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      limits: UNLIMITED,
      providers: { ...providers, r: { ...responses, allow_private: true, api_keys: ["credential"] } },
      models: {
        ...models,
        "fx-c": { provider: "o", upstream_model: "llama", max_output_tokens: 64_000 },
        "fx-r": {
          provider: "r",
          upstream_model: "gpt-any",
          max_output_tokens: 64_000,
          modalities: { input: ["text", "image"], output: ["text", "image"] },
        },
      },
    },
  });
  front = await startTestFront(`127.0.0.1:${core.grpcPort}`);
});

afterAll(async () => {
  await front.close();
  await core.close();
  await upstream.close();
});

interface Served {
  readonly status: number;
  /** What the provider got. */
  readonly sent: string;
  readonly headers: readonly (readonly [string, unknown])[];
  readonly answer: unknown;
}

async function send(port: number, path: string, { body, headers = {} }: { body: string; headers?: object }) {
  const before = upstream.exchanges.length;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", authorization: `Bearer ${core.key}` },
    body,
  });
  // IDs and times differ.
  const answer = (await response.text()).replaceAll(
    /[A-Za-z]+[-_]?[0-9A-Za-z]{15,}|"(?:created|created_at|completed_at|createTime|\w+_ms|\w+Ms)":[^,}]+/g,
    "",
  );
  const exchange = upstream.exchanges[before];
  const ofVendor = Object.entries(exchange?.request.headers ?? {}).filter(([name]) => name.startsWith("anthropic-"));
  return { status: response.status, sent: exchange?.body ?? "", headers: ofVendor, answer } satisfies Served;
}

/** The request as it was recorded, whole, for another model. */
function forModel({ path, body }: Recorded, model: string): { path: string; body: string } {
  const { stream: _, ...whole } = body;
  return {
    path: path.replace("streamGenerateContent", "generateContent").replace(/models\/[^:]+:/, `models/${model}:`),
    body: JSON.stringify("model" in body ? { ...whole, model } : whole),
  };
}

describe("through a front, a provider of the request's own dialect gets what it gets without one", () => {
  it.each(RECORDED)("of %s", async (_, recorded) => {
    const { path, body } = forModel(recorded, ownModel(recorded.path));
    const { headers } = recorded;
    const direct = await send(core.httpPort, path, { body, headers });
    expect([direct.status, direct.sent.length > 0]).toEqual([200, true]);
    expect(await send(front.httpPort, path, { body, headers })).toEqual(direct);
  });

  it.each(RECORDED)("of %s to every other dialect, with the same list of what is lost", async (_, recorded) => {
    for (const model of ["fx-a", "fx-g", "fx-o", "fx-r"]) {
      const { path, body } = forModel(recorded, model);
      const { headers } = recorded;
      expect(await send(front.httpPort, path, { body, headers })).toEqual(
        await send(core.httpPort, path, { body, headers }),
      );
    }
  });

  it("with fields that Parley does not know, a beta's header, and required labels", async () => {
    const fields = { max_tokens: 9, messages: [{ role: "user", content: "Hi", new_field: [1, null] }], new_field: {} };
    const body = JSON.stringify({ model: "fx-a", ...fields });
    const headers = { "anthropic-beta": "new-2026-01-01", "anthropic-new": "a" };
    const { sent, headers: got } = await send(front.httpPort, "/v1/messages?beta=true", { body, headers });
    expect(sent).toBe(body.replace("fx-a", "claude-sonnet-4-5"));
    expect(got).toEqual(expect.arrayContaining(Object.entries(headers)));
    const refused = await send(front.httpPort, "/v1/messages", { body, headers: { "parley-require-region": "eu" } });
    expect([refused.status, refused.sent]).toEqual([400, ""]);
  });

  it("with a tool that OpenAI runs and that is forced, which other dialects refuse", async () => {
    const tools = [{ type: "code_interpreter", container: { type: "auto" } }];
    const asked = { input: "2+2?", tools, tool_choice: { type: "code_interpreter" } };
    const own = await send(front.httpPort, "/v1/responses", { body: JSON.stringify({ model: "fx-r", ...asked }) });
    expect(JSON.parse(own.sent)).toMatchObject({ tools, tool_choice: asked.tool_choice });
    const other = await send(front.httpPort, "/v1/responses", { body: JSON.stringify({ model: "fx-a", ...asked }) });
    expect([other.status, other.sent]).toEqual([400, ""]);
  });

  it("and an explanation names what the caller wrote", async () => {
    const body = JSON.stringify({ model: "fx-g", max_tokens: 9, messages: [{ role: "user", content: "Hi" }], new: 1 });
    const headers = { "anthropic-version": "2023-06-01" };
    const explained = await send(front.httpPort, "/v1/route", { body, headers });
    expect(explained).toEqual(await send(core.httpPort, "/v1/route", { body, headers }));
    expect(explained).toMatchObject({ status: 200, answer: expect.stringContaining('"new"') as unknown });
  });
});

describe("a request in a format, over gRPC", () => {
  const client = () =>
    createClient(CompletionService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${core.grpcPort}` }));
  const call = () => ({ headers: { authorization: `Bearer ${core.key}` } });
  const written = (fields: object, path = "/v1/messages") => ({
    path,
    headers: {},
    body: Buffer.from(
      JSON.stringify({ model: "fx-a", max_tokens: 9, messages: [{ role: "user", content: "Hi" }], ...fields }),
    ),
  });

  it("is served, with what is lost in the contract's words", async () => {
    const { choices, report } = await client().create({ inFormat: written({ model: "fx-g", new_field: 1 }) }, call());
    expect(choices[0]!.message!.parts[0]!.kind).toMatchObject({ case: "text", value: "Hello." });
    expect(report!.omitted.map(({ field }) => field)).toEqual(["provider_options_json.anthropic.new_field"]);
    expect(await client().count({ inFormat: written({}, "/v1/messages/count_tokens") }, call())).toMatchObject({
      inputTokens: 7,
    });
  });

  it.each([
    ["beside a model", { model: "fx-a", inFormat: written({}) }, /^model: must not be set beside in_format/],
    ["beside strict", { strict: true, inFormat: written({}) }, /^strict: must not be set beside in_format/],
    ["at the path of a count", { inFormat: written({}, "/v1/messages/count_tokens") }, /^in_format\.path: /],
    ["at the path of embeddings", { inFormat: written({}, "/v1/embeddings") }, /^in_format\.path: /],
    ["at no path", { inFormat: written({}, "/v1/nothing") }, /^in_format\.path: /],
    ["without a body", { inFormat: { ...written({}), body: Buffer.alloc(0) } }, /body is empty/],
    ["that is no JSON", { inFormat: { ...written({}), body: Buffer.from("{") } }, /not valid JSON/],
    ["of a wrong type", { inFormat: written({ messages: 7 }) }, /^messages/],
    [
      "that continues a kept answer",
      { inFormat: written({ input: "Hi", previous_response_id: "resp_1" }, "/v1/responses") },
      /keeps no responses/,
    ],
  ])("is refused %s", async (_, request, message) => {
    const before = upstream.exchanges.length;
    await expect(client().create(request, call())).rejects.toMatchObject({
      code: 3,
      rawMessage: expect.stringMatching(message) as unknown,
    });
    expect(upstream.exchanges.length).toBe(before);
    expect(core.log.at(-1)).toMatchObject({ msg: "refused", target: "in_format" });
  });
});
