import { describe, expect, it } from "vitest";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { Capabilities, Translation, UpstreamModel } from "../../../src/core/provider.ts";
import { toConverseRequest, toCountBody } from "../../../src/providers/bedrock-converse/request.ts";
import { modelOf } from "../../compatibility/dialects.ts";
import {
  assistant,
  budget,
  cached,
  call,
  effort,
  file,
  HOUR,
  image,
  MINUTES,
  PNG,
  type ReasoningInit,
  request,
  result,
  system,
  text,
  toolResult,
  user,
  WEATHER,
  WEATHER_SCHEMA,
} from "../anthropic/builders.ts";
import { clampsOf, omittedOf } from "../omissions.ts";

function model(changes: Partial<Capabilities> = {}): UpstreamModel {
  const base = modelOf("bedrock-converse", {});
  return {
    ...base,
    inputModalities: new Set([...base.inputModalities, Modality.VIDEO]),
    capabilities: { ...base.capabilities, ...changes },
  };
}

function translate(given: CompletionRequest, changes: Partial<Capabilities> = {}): Translation {
  return toConverseRequest(given, model(changes), { mode: "whole" });
}

const bodyOf = (given: CompletionRequest, changes: Partial<Capabilities> = {}): Record<string, unknown> =>
  JSON.parse(translate(given, changes).body.toString()) as Record<string, unknown>;

const CALL = call({ id: "c1", name: "get_weather", argumentsJson: '{"city":"Paris"}' });
const SPEC = {
  toolSpec: { name: "get_weather", description: "Current weather for a city", inputSchema: { json: WEATHER_SCHEMA } },
};

describe("a request of Converse", () => {
  it("has system, turns and limits", () => {
    const given = request({
      messages: [system("Be brief."), user("a"), user("b"), assistant("c"), user([text("d"), text(" ")])],
      maxOutputTokens: 100,
      temperature: 0.5,
      topP: 0.9,
      stopSequences: ["END"],
    });
    expect(bodyOf(given)).toEqual({
      system: [{ text: "Be brief." }],
      messages: [
        { role: "user", content: [{ text: "a" }, { text: "b" }] },
        { role: "assistant", content: [{ text: "c" }] },
        { role: "user", content: [{ text: "d" }] },
      ],
      inferenceConfig: { maxTokens: 100, temperature: 0.5, topP: 0.9, stopSequences: ["END"] },
      additionalModelResponseFieldPaths: ["/stop_sequence"],
    });
    expect(translate(given).sent).toMatchObject({ maxTokens: 100, cacheWrite: "none" });
  });

  it("has tools, calls and results, also with pictures and of failures, first in their turn", () => {
    const messages = [
      user("Weather?"),
      assistant([CALL, call({ id: "c2", name: "get_weather" })]),
      user("Well?"),
      { role: Role.TOOL, parts: [result("c2", [text("no"), image(PNG)], true), result("c1", "sunny")] },
    ];
    expect(bodyOf(request({ tools: [WEATHER], messages }))).toMatchObject({
      toolConfig: { tools: [SPEC] },
      messages: [
        {},
        {
          role: "assistant",
          content: [
            { toolUse: { toolUseId: "c1", name: "get_weather", input: { city: "Paris" } } },
            { toolUse: { toolUseId: "c2", name: "get_weather", input: {} } },
          ],
        },
        {
          role: "user",
          content: [
            { toolResult: { toolUseId: "c1", content: [{ text: "sunny" }] } },
            {
              toolResult: {
                toolUseId: "c2",
                status: "error",
                content: [{ text: "no" }, { image: { format: "png", source: { bytes: PNG.toString("base64") } } }],
              },
            },
            { text: "Well?" },
          ],
        },
      ],
    });
  });

  it("declares called tools, because a conversation with calls needs some", () => {
    const messages = [user("a"), assistant([CALL]), toolResult("c1", "sunny")];
    expect(bodyOf(request({ messages }))["toolConfig"]).toEqual({
      tools: [{ toolSpec: { name: "get_weather", inputSchema: { json: { type: "object", properties: {} } } } }],
    });
    const none = { choice: { case: "mode", value: ToolMode.NONE } } as const;
    const translation = translate(request({ messages, tools: [WEATHER], toolChoice: none }));
    expect(omittedOf(translation)).toEqual(["tool_choice"]);
    expect(bodyOf(request({ tools: [WEATHER], toolChoice: none }))["toolConfig"]).toBeUndefined();
  });

  it("forces tools where the model can be forced", () => {
    const required = { choice: { case: "mode", value: ToolMode.REQUIRED } } as const;
    const one = { choice: { case: "function", value: "get_weather" } } as const;
    const configOf = (toolChoice: typeof required | typeof one) =>
      bodyOf(request({ tools: [WEATHER], toolChoice }))["toolConfig"];
    expect(configOf(required)).toMatchObject({ toolChoice: { any: {} } });
    expect(configOf(one)).toMatchObject({ toolChoice: { tool: { name: "get_weather" } } });
    const free = translate(request({ tools: [WEATHER], toolChoice: required }), { forcedTools: false });
    expect(omittedOf(free)).toEqual(["tool_choice"]);
  });

  it("has documents under names of their own, and recordings by their format", () => {
    const data = Buffer.from("%PDF-1.7");
    const pdf = (name: string) =>
      file({ source: { case: "data", value: data }, name, mediaType: "", citations: name === "b" });
    const csv = file({ source: { case: "data", value: Buffer.from("a,b") }, name: "t", mediaType: "text/csv" });
    const video = {
      kind: { case: "video", value: { source: { case: "data", value: data }, mediaType: "video/quicktime" } },
    } as const;
    const audio = {
      kind: { case: "audio", value: { source: { case: "data", value: data }, mediaType: "audio/mpeg" } },
    } as const;
    const parts = [pdf("Q3_report: final!.pdf"), pdf("Q3 report final.pdf"), pdf("b"), pdf(""), csv, video, audio];
    const { messages } = bodyOf(request({ messages: [user(parts)] })) as { messages: { content: object[] }[] };
    expect(messages[0]!.content).toMatchObject([
      { document: { format: "pdf", name: "Q3 report final", source: { bytes: data.toString("base64") } } },
      { document: { name: "Q3 report final (2)" } },
      { document: { name: "b", citations: { enabled: true } } },
      { document: { name: "document" } },
      { document: { format: "csv", name: "t" } },
      { video: { format: "mov" } },
      { audio: { format: "mp3" } },
    ]);
  });

  it.each([
    [
      "an address of a picture",
      { kind: { case: "image", value: { source: { case: "url", value: "https://a/b.png" } } } },
    ],
    [
      "a document of another kind",
      { kind: { case: "file", value: { source: { case: "data", value: PNG }, mediaType: "image/png" } } },
    ],
    ["an uploaded document", { kind: { case: "file", value: { source: { case: "id", value: "file-1" } } } }],
    [
      "a recording of another kind",
      { kind: { case: "audio", value: { source: { case: "data", value: PNG }, mediaType: "audio/midi" } } },
    ],
  ] as const)("refuses %s", (_, part) => {
    expect(() => translate(request({ messages: [user([part])] }))).toThrow("messages[0].parts[0]: must");
  });

  it("sends reasoning back with its state only, whole, and to models that reason", () => {
    const turnOf = (changes: Partial<Capabilities>, more: ReasoningInit[] = []) => {
      const reasoning = [{ text: "Hm.", signature: "c2ln" }, { redacted: "aGlkZGVu" }, ...more];
      const given = request({ messages: [user("a"), assistant("b", { reasoning }), user("c")] });
      return (bodyOf(given, changes)["messages"] as unknown[])[1];
    };
    expect(turnOf({ reasoning: "budget" })).toEqual({
      role: "assistant",
      content: [
        { reasoningContent: { reasoningText: { text: "Hm.", signature: "c2ln" } } },
        { reasoningContent: { redactedContent: "aGlkZGVu" } },
        { text: "b" },
      ],
    });
    const plain = { role: "assistant", content: [{ text: "b" }] };
    expect(turnOf({ reasoning: "budget" }, [{ text: "unsigned" }])).toEqual(plain);
    expect(turnOf({ reasoning: "none" })).toEqual(plain);
  });

  it("places later system messages where the model takes them, else in front", () => {
    const given = request({ messages: [user("a"), system("Now in French."), assistant("b"), user("c")] });
    expect(bodyOf(given)).toMatchObject({ system: [{ text: "Now in French." }] });
    expect(bodyOf(given, { midConversationSystem: true })).toMatchObject({
      messages: [{}, { role: "system" }, {}, {}],
    });
  });
});

it("has no limit of tokens unless one is asked for, or a budget of thinking needs one", () => {
  expect(bodyOf(request({}))["inferenceConfig"]).toBeUndefined();
  expect(translate(request({})).sent.maxTokens).toBeUndefined();
  const thinking = request({ reasoning: budget(2000) });
  expect(bodyOf(thinking, { reasoning: "budget" })["inferenceConfig"]).toEqual({ maxTokens: 8192 });
});

describe("cache marks", () => {
  const marked = request({
    tools: [cached(WEATHER, HOUR)],
    messages: [
      system([cached(text("s"))]),
      user([cached(text("a"), HOUR), text("b")]),
      assistant("c"),
      user([cached(text("d"), MINUTES)]),
    ],
  });

  it("are blocks after what they end, with an hour only before shorter ones", () => {
    const translation = translate(marked, { cachePoints: true });
    expect(JSON.parse(translation.body.toString())).toMatchObject({
      toolConfig: { tools: [SPEC, { cachePoint: { type: "default", ttl: "1h" } }] },
      system: [{ text: "s" }, { cachePoint: { type: "default" } }],
      messages: [
        { content: [{ text: "a" }, { cachePoint: { type: "default", ttl: "5m" } }, { text: "b" }] },
        {},
        { content: [{ text: "d" }, { cachePoint: { type: "default", ttl: "5m" } }] },
      ],
    });
    expect(clampsOf(translation)).toEqual([
      { field: "messages[1].parts[0].cache_mark.ttl", requested: "3600s", sent: "300s" },
    ]);
    expect(translation.sent.cacheWrite).toBe("hour");
  });

  it("are four at most, the last ones", () => {
    const given = request({ messages: [user(["a", "b", "c", "d", "e"].map((each) => cached(text(each))))] });
    const translation = translate(given, { cachePoints: true });
    expect(omittedOf(translation)).toEqual(["messages[0].parts[0].cache_mark"]);
    expect(translation.body.toString().match(/cachePoint/g)).toHaveLength(4);
  });

  it("are omitted for a model that does not take them", () => {
    const translation = translate(marked);
    expect(omittedOf(translation).toSorted()).toEqual([
      "messages[0].parts[0].cache_mark",
      "messages[1].parts[0].cache_mark",
      "messages[3].parts[0].cache_mark",
      "tools[0].cache_mark",
    ]);
    expect(translation.body.toString()).not.toContain("cachePoint");
  });
});

describe("reasoning", () => {
  const fieldsOf = (given: CompletionRequest, changes: Partial<Capabilities>) => {
    const { additionalModelRequestFields, outputConfig, inferenceConfig } = bodyOf(given, changes);
    return { additionalModelRequestFields, outputConfig, inferenceConfig };
  };

  it("is a budget of thinking, which rules temperature out", () => {
    const given = request({
      reasoning: effort(ReasoningEffort.MEDIUM),
      maxOutputTokens: 10_000,
      temperature: 0.5,
      topK: 5,
    });
    expect(fieldsOf(given, { reasoning: "budget" })).toEqual({
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 5000 } },
      inferenceConfig: { maxTokens: 10_000 },
    });
    const named = request({ reasoning: budget(2000), maxOutputTokens: 10_000 });
    expect(fieldsOf(named, { reasoning: "budget" })).toMatchObject({
      additionalModelRequestFields: { thinking: { budget_tokens: 2000 } },
    });
    const plain = request({ topK: 5 });
    expect(fieldsOf(plain, { reasoning: "budget" })).toMatchObject({ additionalModelRequestFields: { top_k: 5 } });
  });

  it("is an effort beside adaptive thinking, or a level", () => {
    const given = request({ reasoning: effort(ReasoningEffort.MINIMAL) });
    expect(fieldsOf(given, { reasoning: "adaptive" })).toMatchObject({
      additionalModelRequestFields: { thinking: { type: "adaptive" } },
      outputConfig: { effort: "low" },
    });
    expect(fieldsOf(given, { reasoning: "level" })).toMatchObject({
      additionalModelRequestFields: { reasoning_effort: "low" },
    });
    expect(clampsOf(translate(given, { reasoning: "level" }))).toHaveLength(1);
  });

  it("is not asked for while a tool is forced", () => {
    const toolChoice = { choice: { case: "mode", value: ToolMode.REQUIRED } } as const;
    const given = request({ tools: [WEATHER], toolChoice, reasoning: effort(ReasoningEffort.HIGH) });
    expect(omittedOf(translate(given, { reasoning: "budget" }))).toEqual(["reasoning.effort"]);
  });
});

describe("JSON by a schema", () => {
  const schemaJson = JSON.stringify(WEATHER_SCHEMA);
  const given = request({ responseFormat: { format: { case: "jsonSchema", value: { name: "weather", schemaJson } } } });

  it("is enforced where the model does so, else said in words", () => {
    expect(bodyOf(given, { jsonSchema: true })["outputConfig"]).toEqual({
      textFormat: { type: "json_schema", structure: { jsonSchema: { name: "weather", schema: schemaJson } } },
    });
    expect(JSON.stringify(bodyOf(given)["system"])).toContain("JSON schema");
    expect(omittedOf(translate(given))).toEqual(["response_format.json_schema"]);
  });
});

describe("a count", () => {
  it("has what is counted of a request", () => {
    const { body } = translate(request({ tools: [WEATHER], messages: [system("s"), user("a")], temperature: 0.5 }));
    expect(JSON.parse(toCountBody(body).toString())).toEqual({
      input: {
        converse: {
          messages: [{ role: "user", content: [{ text: "a" }] }],
          system: [{ text: "s" }],
          toolConfig: { tools: [SPEC] },
        },
      },
    });
  });
});
