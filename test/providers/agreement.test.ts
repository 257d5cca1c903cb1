import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { DIALECTS, type Dialect } from "../../src/config/dialects.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Translation } from "../../src/core/provider.ts";
import { readChatRequest } from "../../src/formats/openai-chat/request.ts";
import { anthropic } from "../../src/providers/anthropic/provider.ts";
import { bedrockConverse } from "../../src/providers/bedrock-converse/provider.ts";
import { gemini } from "../../src/providers/gemini/provider.ts";
import { connectUpstream, type Upstream, type UpstreamRequest } from "../../src/providers/transport/http.ts";
import { openai } from "../../src/providers/openai/provider.ts";
import { writeState } from "../../src/providers/openai-responses/state.ts";
import { openaiResponses } from "../../src/providers/openai-responses/provider.ts";
import { modelOf, TRANSLATORS } from "../compatibility/dialects.ts";
import type { Condition } from "../compatibility/table.ts";
import { omittedOf } from "./omissions.ts";
import { startRawServer } from "./transport/raw-server.ts";

type Fields = Readonly<Record<string, unknown>>;

const user = { role: "user", content: "Hi" };
const TOOLS = { tools: [{ type: "function", function: { name: "f" } }] };

function translate(dialect: Dialect, fields: Fields, condition: Condition = {}): Translation {
  const { request } = readChatRequest({ model: "m", messages: [user], ...fields });
  return TRANSLATORS[dialect].translate(request, modelOf(dialect, condition), { mode: "whole" });
}

const schemaFormat = (schema: object): Fields => ({
  response_format: { type: "json_schema", json_schema: { name: "a", schema } },
});

describe.each(DIALECTS)("what every dialect lists alike: %s", (dialect) => {
  it.each<[string, Fields, Condition, string[]]>([
    [
      "all that is said about tools, for a model without",
      { ...TOOLS, tool_choice: "required", parallel_tool_calls: false },
      { tools: false },
      ["tools", "tool_choice", "parallel_tool_calls"],
    ],
    [
      "tools alone, when what is said about them means nothing without",
      { ...TOOLS, tool_choice: "auto", parallel_tool_calls: true },
      { tools: false },
      ["tools"],
    ],
    ["nothing of a rule about tools that are not there", { tool_choice: "none", parallel_tool_calls: false }, {}, []],
    [
      "both options of a picture",
      { image_config: { aspect_ratio: "1:1", image_size: "1K" } },
      { image_options: false },
      ["image_options.aspect_ratio", "image_options.size"],
    ],
    ["no option of a picture that is not given", { image_config: {} }, { image_options: false }, []],
    [
      "no alternatives, when none were asked for",
      { logprobs: true, top_logprobs: 0 },
      { logprobs: false },
      ["logprobs"],
    ],
    [
      "a schema that nothing enforces",
      schemaFormat({ type: "object" }),
      { json_schema: false },
      ["response_format.json_schema"],
    ],
    [
      "an effort for a model that always reasons and was asked not to",
      { reasoning_effort: "none" },
      { reasoning: "budget", reasoning_by_default: true, reasoning_can_be_disabled: false },
      ["reasoning.effort"],
    ],
    [
      "the speaker of a tool's result",
      {
        messages: [
          user,
          { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
          { role: "tool", tool_call_id: "c", name: "f", content: "ok" },
        ],
      },
      {},
      ["messages[2].name"],
    ],
  ])("%s", (_, fields, condition, omitted) => {
    expect(omittedOf(translate(dialect, fields, condition))).toEqual(omitted);
  });

  it("takes a JSON schema format without a schema", () => {
    const responseFormat = { type: "json_schema", json_schema: { name: "a" } };
    expect(omittedOf(translate(dialect, { response_format: responseFormat }))).toEqual([]);
  });

  it("refuses speech of an earlier answer that it cannot refer to", () => {
    const messages = [user, { role: "assistant", content: "Yes?", audio: { id: "audio_1" } }, user];
    expect(() => translate(dialect, { messages })).toThrow("messages[1].parts[1]: ");
  });
});

describe("state that the Responses API gave", () => {
  const signature = writeState({ phase: "final_answer" });
  const messages = [
    { role: Role.USER, parts: [{ kind: { case: "text", value: "Hi" } }] },
    {
      role: Role.ASSISTANT,
      parts: [
        { kind: { case: "reasoning", value: { text: "Hm." } }, signature },
        { kind: { case: "text", value: "Yes?" }, signature },
      ],
    },
    { role: Role.USER, parts: [{ kind: { case: "text", value: "Go on." } }] },
  ] as const;

  it.each(DIALECTS.filter((dialect) => dialect !== "openai-responses"))(
    "is not sent to a provider of %s",
    (dialect) => {
      const request = create(CompletionRequestSchema, { model: "m", messages: [...messages] as never });
      const model = modelOf(dialect, { preserved_reasoning: true });
      const { body, omitted } = TRANSLATORS[dialect].translate(request, model, { mode: "whole" });
      expect(body.toString()).not.toContain(signature);
      expect(body.toString()).toContain("Yes?");
      expect(omitted).toEqual([]);
    },
  );
});

describe("a rule of a schema that the provider does not enforce", () => {
  const at = "response_format.json_schema.schema_json";

  it("is listed by its path, wherever it stands", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      properties: {
        name: { type: "string", minLength: 1, default: "a" },
        either: { oneOf: [{ const: 1 }, { type: "object", properties: {}, additionalProperties: true }] },
        list: { type: "array", items: { type: "number", multipleOf: 2 } },
        never: false,
      },
      definitions: { n: { type: "string", pattern: "x" } },
    };
    expect(omittedOf(translate("anthropic", schemaFormat(schema)))).toEqual([
      `${at}.properties.name.minLength`,
      `${at}.properties.either.oneOf[1].additionalProperties`,
      `${at}.properties.list.items.multipleOf`,
      `${at}.properties.never`,
      `${at}.definitions.n.pattern`,
    ]);
  });
});

describe("an earlier answer, for a server of the OpenAI dialect", () => {
  const answered = (fields: Fields): Fields => ({
    messages: [user, { role: "assistant", content: "Yes?", ...fields }, user],
  });

  it("refuses a document that a model cannot have said", () => {
    const content = [{ type: "file", file: { file_id: "file_1" } }];
    expect(() => translate("openai", answered({ content }))).toThrow(
      "messages[1].parts[0]: an assistant message cannot hold a file",
    );
  });

  it("lists each picture, and says the rest", () => {
    const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } };
    const { body, omitted } = translate("openai", answered({ images: [image, image] }));
    expect(omittedOf({ omitted })).toEqual(["messages[1].parts[1]", "messages[1].parts[2]"]);
    expect(body.toString()).not.toContain("example.com");
  });
});

it("an effort is listed for a model of Gemini's dialect that knows no levels", () => {
  const condition = { reasoning: "level", reasoning_efforts: [] };
  expect(omittedOf(translate("gemini", { reasoning_effort: "high" }, condition))).toEqual(["reasoning.effort"]);
});

it("what an answer's JSON is for reaches the model in both dialects that take only a schema", () => {
  const { response_format } = schemaFormat({ type: "object" }) as { response_format: { json_schema: object } };
  const json_schema = { ...response_format.json_schema, description: "The invoice" };
  for (const dialect of ["anthropic", "gemini"] as const)
    expect(translate(dialect, { response_format: { type: "json_schema", json_schema } }).body.toString()).toContain(
      "The invoice",
    );
});

const CONNECTORS = {
  anthropic,
  "bedrock-converse": bedrockConverse,
  gemini,
  openai,
  "openai-responses": openaiResponses,
} satisfies Record<Dialect, unknown>;

describe.each(Object.entries(CONNECTORS))("a call in the dialect %s", (name, connect) => {
  const call = { translation: translate(name as Dialect, {}), model: modelOf(name as Dialect, {}), idleMs: 1_234 };

  it.each(["create", "stream"] as const)(
    "passes its time limits and its key for scheduling to the transport: %s",
    async (method) => {
      const posted: UpstreamRequest[] = [];
      const upstream: Upstream = {
        async post(request) {
          posted.push(request);
          throw new Failure("upstream_unavailable", "Nobody is there.");
        },
        close: async () => undefined,
      };
      const provider = connect({ upstream });
      const { signal } = new AbortController();
      const asked = { ...call, signal, keyFamilyId: "line" };
      const answered = method === "create" ? provider.create(asked) : provider.stream(asked, () => undefined);
      await expect(answered).rejects.toThrow("Nobody is there.");
      expect(posted).toMatchObject([{ signal, idleMs: 1_234, keyFamilyId: "line" }]);
    },
  );

  it("sends configured headers once, in place of its own of the same name", async () => {
    const server = await startRawServer((socket) => void socket.end("HTTP/1.1 418 x\r\ncontent-length: 0\r\n\r\n"));
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const headers = { "content-type": "application/other+json", "x-team": "a" };
    const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs: 1_000 });
    const provider = connect({ upstream, headers });
    const { signal } = new AbortController();
    await expect(provider.create({ ...call, signal })).rejects.toMatchObject({ upstreamStatus: 418 });
    const lines = server.requests[0]!.split("\r\n\r\n")[0]!.split("\r\n");
    expect(lines.filter((line) => /^(content-type|x-team):/i.test(line))).toEqual([
      "content-type: application/other+json",
      "x-team: a",
    ]);
    await provider.close();
    await server.stop();
  });
});
