import { describe, expect, it } from "vitest";
import { type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { Failure } from "../../../src/core/failure.ts";
import { readCountRequest, readGeminiRequest, type ReadRequest } from "../../../src/formats/gemini/request.ts";
import { failureOf } from "../../support/errors.ts";

const HI = [{ parts: [{ text: "Hi" }] }];

function read(fields: object): ReadRequest {
  return readGeminiRequest(structuredClone({ contents: HI, ...fields }), "m");
}

function refusal(fields: object): Failure {
  return failureOf(() => read(fields));
}

/** Each message as its role and the content of its parts. */
function conversation(contents: readonly object[]): unknown[] {
  return read({ contents }).request.messages.map(({ role, parts }) => [Role[role], ...parts.map(inShort)]);
}

function inShort({ kind, signature }: Part): unknown {
  const signed = signature === "" ? {} : { signature };
  switch (kind.case) {
    case "text":
      return signature === "" ? kind.value : { text: kind.value, ...signed };
    case "reasoning":
      return { reasoning: kind.value.text || kind.value.redacted, ...signed };
    case "toolCall":
      return { call: kind.value.id, name: kind.value.name, ...signed };
    case "toolResult":
      return { result: kind.value.toolCallId, parts: kind.value.parts.map(inShort) };
    case "native":
      return { native: JSON.parse(kind.value.json) as unknown };
    default:
      return { kind: kind.case, ...signed };
  }
}

const PNG = "iVBORw0KGgo=";
const call = (name: string, id?: string): object => ({ functionCall: { name, args: {}, ...(id && { id }) } });
const response = (name: string, id?: string): object => ({
  functionResponse: { name, response: { output: name }, ...(id && { id }) },
});
const result = (id: string, name: string): object => ({ result: id, parts: [JSON.stringify({ output: name })] });

describe("the spelling of a request", () => {
  it("may be snake case everywhere but in the caller's own JSON", () => {
    const { request, unrecognized } = read({
      contents: [{ parts: [{ inline_data: { mime_type: "image/png", data: PNG } }] }],
      system_instruction: { parts: [{ text: "Be brief." }] },
      generation_config: { max_output_tokens: 5, thinking_config: { thinking_level: "low" }, stop_sequences: ["a"] },
      tools: [{ function_declarations: [{ name: "f", parameters_json_schema: { properties: { max_items: {} } } }] }],
      tool_config: { function_calling_config: { allowed_function_names: ["f"], mode: "ANY" } },
      safety_settings: [{ category: "X" }],
      fallback_models: ["b"],
    });
    expect(request).toMatchObject({
      maxOutputTokens: 5,
      stopSequences: ["a"],
      fallbackModels: ["b"],
      reasoning: { effort: ReasoningEffort.LOW },
      toolChoice: { choice: { case: "function", value: "f" } },
      providerOptionsJson: { "gemini.safety_settings": '[{"category":"X"}]' },
    });
    expect(request.messages.map(({ role }) => role)).toEqual([Role.SYSTEM, Role.USER]);
    expect(request.tools[0]?.kind.value).toMatchObject({ parametersJson: '{"properties":{"max_items":{}}}' });
    expect(unrecognized).toEqual([]);
  });

  it.each([
    [{ generationConfig: { topK: 3, top_k: 4 } }, "topK: is given twice, also as top_k"],
    [{ serviceTier: null, service_tier: "priority" }, "serviceTier: is given twice, also as service_tier"],
    [{ generation_config: {}, generationConfig: {} }, "generationConfig: is given twice, also as generation_config"],
  ])("is one of the two: %j", (fields, message) => {
    expect(() => read(fields)).toThrow(message);
  });

  it("may have one object in place of a list", () => {
    const { request } = read({ contents: { parts: { text: "Hi" } }, systemInstruction: { parts: { text: "Hm" } } });
    expect(request.messages).toHaveLength(2);
  });

  it("is not changed by keys of the prototype", () => {
    const json = JSON.parse(
      '{"__proto__":{"contents":1},"constructor":1,"contents":[{"parts":[{"text":"Hi"}]}]}',
    ) as object;
    expect(readGeminiRequest(json, "m").unrecognized).toEqual(["__proto__", "constructor"]);
  });
});

describe("contents", () => {
  it("of the model in a row are one message, with text joined: clients keep each piece of a stream", () => {
    expect(
      conversation([
        { role: "user", parts: [{ text: "a" }, { text: "b" }] },
        { role: "model", parts: [{ text: "c" }] },
        { role: "model", parts: [{ text: "d", thoughtSignature: "c2ln" }] },
        { role: "model", parts: [{ text: "e" }] },
        { role: "model", parts: [{ text: "" }] },
        { role: "user", parts: [{ text: "f" }] },
        { role: "user", parts: [{ text: "g" }] },
      ]),
    ).toEqual([
      ["USER", "a", "b"],
      ["ASSISTANT", { text: "cd", signature: "c2ln" }, "e"],
      ["USER", "f"],
      ["USER", "g"],
    ]);
  });

  it("without parts are left out: clients keep an empty turn after a failed call", () => {
    expect(conversation([...HI, { role: "model", parts: [] }, { role: "model" }, ...HI])).toEqual([
      ["USER", "Hi"],
      ["USER", "Hi"],
    ]);
  });

  it("keep calls and responses together by ID, or by name and order", () => {
    expect(
      conversation([
        ...HI,
        { role: "model", parts: [call("f"), call("g"), call("f")] },
        { role: "user", parts: [response("f"), response("f"), response("g"), { text: "now" }] },
        { role: "model", parts: [call("f"), call("f", "own")] },
        { role: "function", parts: [response("f", "own"), response("f", "unknown")] },
      ]),
    ).toEqual([
      ["USER", "Hi"],
      ["ASSISTANT", { call: "call_0", name: "f" }, { call: "call_1", name: "g" }, { call: "call_2", name: "f" }],
      ["TOOL", result("call_0", "f"), result("call_2", "f"), result("call_1", "g")],
      ["USER", "now"],
      ["ASSISTANT", { call: "call_3", name: "f" }, { call: "own", name: "f" }],
      ["TOOL", result("own", "f"), result("call_3", "f")],
    ]);
  });

  it("have pictures, recordings, videos, documents and addresses by their media types", () => {
    const parts = [
      { inlineData: { mimeType: "image/png", data: PNG } },
      { inlineData: { mimeType: "audio/wav", data: "-_-_" } },
      { inlineData: { mimeType: "video/mp4", data: "AAAA" }, videoMetadata: { startOffset: "1.5s", fps: 2 } },
      { inlineData: { mimeType: "application/pdf", data: "JVBERi0=" } },
      { fileData: { fileUri: "https://example.com/a.png", mimeType: "image/png" } },
      { fileData: { fileUri: "https://www.youtube.com/watch?v=x" } },
      { fileData: { fileUri: "https://example.com/a.pdf", mimeType: "application/pdf" } },
      { executableCode: { language: "PYTHON", code: "1" } },
    ];
    const kinds = read({ contents: [{ parts }] }).request.messages[0]!.parts.map(({ kind }) => kind);
    expect(kinds.map((kind) => kind.case)).toEqual([
      "image",
      "audio",
      "video",
      "file",
      "image",
      "video",
      "file",
      "native",
    ]);
    expect(kinds[1]?.value).toMatchObject({ source: { value: Buffer.from("-_-_", "base64url") } });
    expect(kinds[2]?.value).toMatchObject({ startOffset: { seconds: 1n, nanos: 500_000_000 }, framesPerSecond: 2 });
    expect(kinds[7]?.value).toMatchObject({ dialect: "gemini", json: JSON.stringify(parts[7]) });
  });

  it("have the files of a function's response beside it", () => {
    const functionResponse = {
      name: "f",
      response: { a: 1 },
      parts: [{ inlineData: { mimeType: "image/png", data: PNG } }],
    };
    const [, , tool] = conversation([...HI, { role: "model", parts: [call("f")] }, { parts: [{ functionResponse }] }]);
    expect(tool).toEqual(["TOOL", { result: "call_0", parts: ['{"a":1}', { kind: "image" }] }]);
  });

  it("have thoughts as reasoning", () => {
    const model = {
      role: "model",
      parts: [{ text: "Hm", thought: true }, { text: "m.", thought: true }, { text: "A" }],
    };
    expect(conversation([...HI, model])[1]).toEqual(["ASSISTANT", { reasoning: "Hmm." }, "A"]);
  });

  it("have signatures in the standard alphabet: a client returns them in the URL-safe one, without padding", () => {
    const signed = (thoughtSignature: string): unknown =>
      conversation([...HI, { role: "model", parts: [{ text: "A", thoughtSignature }] }])[1];
    expect(signed("-_-_-_8")).toEqual(["ASSISTANT", { text: "A", signature: "+/+/+/8=" }]);
    // The vendor's word for an unknown signature is no base64 of ours.
    const sentinel = "skip_thought_signature_validator";
    expect(signed(sentinel)).toEqual(["ASSISTANT", { text: "A", signature: sentinel }]);
  });
});

describe("the configuration of a request", () => {
  it("may hold what clients send for nothing", () => {
    const { request, unrecognized } = read({
      safetySettings: [],
      tools: [],
      generationConfig: {
        stopSequences: [],
        responseMimeType: "text/plain",
        responseModalities: ["TEXT"],
        thinkingConfig: { thinkingLevel: "THINKING_LEVEL_UNSPECIFIED", thinkingBudget: -1 },
        temperature: null,
      },
      toolConfig: { functionCallingConfig: { mode: "MODE_UNSPECIFIED" } },
    });
    const { reasoning, temperature, toolChoice, responseFormat, providerOptionsJson } = request;
    expect([reasoning, temperature, toolChoice, responseFormat]).toEqual([undefined, undefined, undefined, undefined]);
    expect(providerOptionsJson).toEqual({});
    expect(unrecognized).toEqual([]);
  });

  it("has budgets of thinking as tokens, and 0 as none", () => {
    const of = (thinkingBudget: number) =>
      read({ generationConfig: { thinkingConfig: { thinkingBudget } } }).request.reasoning;
    expect(of(0)).toMatchObject({ effort: ReasoningEffort.NONE });
    expect(of(4000)).toMatchObject({ effort: ReasoningEffort.UNSPECIFIED, maxTokens: 4000 });
  });

  it("has schemas of the vendor's form as JSON schemas, and types in upper case in both", () => {
    const schema = {
      type: "OBJECT",
      propertyOrdering: ["b", "a"],
      properties: {
        a: { type: "STRING", nullable: true, enum: ["OBJECT"] },
        b: { type: "ARRAY", items: { type: "INTEGER" }, minItems: "1" },
        type: { anyOf: [{ type: "NUMBER" }, { type: "TYPE_UNSPECIFIED" }] },
      },
    };
    const expected = JSON.stringify({
      type: "object",
      properties: {
        b: { type: "array", items: { type: "integer" }, minItems: 1 },
        a: { type: ["string", "null"], enum: ["OBJECT", null] },
        type: { anyOf: [{ type: "number" }, {}] },
      },
    });
    for (const field of ["responseSchema", "responseJsonSchema"]) {
      const { format } = read({ generationConfig: { [field]: schema } }).request.responseFormat!;
      expect(format).toMatchObject({ case: "jsonSchema", value: { name: "response", schemaJson: expected } });
    }
    const { tools } = read({ tools: [{ functionDeclarations: [{ name: "f", parameters: schema }] }] }).request;
    expect(tools[0]?.kind.value).toMatchObject({ parametersJson: expected });
  });

  it("keeps tools that the provider runs as native ones, with those of the caller beside them", () => {
    const { request, nameOf } = read({
      tools: [{ googleSearch: {} }, { functionDeclarations: [{ name: "f" }, { name: "g" }], codeExecution: {} }],
      toolConfig: { functionCallingConfig: { mode: "VALIDATED" } },
    });
    expect(request.tools.map(({ kind }) => kind.value)).toMatchObject([
      { dialect: "gemini", json: '{"googleSearch":{}}' },
      { name: "f", strict: true },
      { name: "g", strict: true },
      { dialect: "gemini", json: '{"codeExecution":{}}' },
    ]);
    expect(request.toolChoice?.choice).toEqual({ case: "mode", value: ToolMode.AUTO });
    expect([0, 2, 3].map((index) => nameOf(`tools[${index}]`))).toEqual([
      "tools[0].googleSearch",
      "tools[1].functionDeclarations[1]",
      "tools[1].codeExecution",
    ]);
  });

  it("gives functions whose names the contract does not allow an alias, the same in every request", () => {
    const { request, functionNames } = read({
      contents: [...HI, { role: "model", parts: [call("mcp.server:tool")] }, { parts: [response("mcp.server:tool")] }],
      tools: [{ functionDeclarations: [{ name: "mcp.server:tool" }] }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["mcp.server:tool"] } },
    });
    const { name } = request.tools[0]!.kind.value as { name: string };
    expect(name).toMatch(/^mcp_server_tool_[0-9a-f]{12}$/);
    expect(request.toolChoice?.choice.value).toBe(name);
    expect(request.messages[1]?.parts[0]?.kind.value).toMatchObject({ name });
    expect(functionNames.toGiven(name)).toBe("mcp.server:tool");
  });

  it("names what it does not know", () => {
    const { unrecognized } = read({
      generationConfig: { speechConfig: {}, thinkingConfig: { a: 1 }, stopSequences: ["a", "b", "c", "d", "e"] },
      toolConfig: { retrievalConfig: {} },
      surprise: 1,
    });
    expect(unrecognized.toSorted()).toEqual([
      "generationConfig.speechConfig",
      "generationConfig.stopSequences[4]",
      "generationConfig.thinkingConfig.a",
      "surprise",
      "toolConfig.retrievalConfig",
    ]);
  });
});

describe("a refused request names the caller's field", () => {
  it.each([
    ["contents", { contents: undefined }],
    ["contents[0].parts[0].text", { contents: [{ parts: [{ text: 1 }] }] }],
    ["contents[0].role", { contents: [{ role: "assistant", parts: [] }] }],
    [
      "contents[0].parts[0].inlineData.data",
      { contents: [{ parts: [{ inlineData: { mimeType: "a/b", data: "?" } }] }] },
    ],
    ["cachedContent", { cachedContent: "cachedContents/x" }],
    ["generationConfig.responseMimeType", { generationConfig: { responseMimeType: "text/x.enum" } }],
    ["generationConfig.responseModalities", { generationConfig: { responseModalities: ["AUDIO"] } }],
    ["generationConfig.logprobs", { generationConfig: { logprobs: 3 } }],
    ["generationConfig.thinkingConfig.thinkingLevel", { generationConfig: { thinkingConfig: { thinkingLevel: "x" } } }],
    ["generationConfig.maxOutputTokens", { generation_config: { max_output_tokens: 1.5 } }],
    ["toolConfig.functionCallingConfig.mode", { toolConfig: { functionCallingConfig: { mode: "SOME" } } }],
  ])("%s", (field, fields) => {
    expect(refusal(fields).violations.map((each) => each.field)).toEqual([field]);
  });

  it("at most 20 of them", () => {
    expect(refusal({ contents: Array.from({ length: 5000 }, () => 1) }).violations).toHaveLength(20);
  });
});

describe("names of the contract's fields", () => {
  const { nameOf } = read({
    systemInstruction: { parts: [{ text: "" }, { text: "S" }] },
    contents: [
      ...HI,
      { role: "model", parts: [{ text: "a" }] },
      { role: "model", parts: [{ text: "b" }, call("f")] },
      { parts: [{ text: "c" }, response("f")] },
    ],
    tools: [{ functionDeclarations: [{ name: "f", parameters: {} }] }],
    generationConfig: { responseSchema: {} },
  });

  it.each([
    ["messages[0].parts[0]", "systemInstruction.parts[1]"],
    ["messages[1].parts[0]", "contents[0].parts[0]"],
    ["messages[2].parts[1]", "contents[2].parts[1]"],
    ["messages[3].parts[0].tool_result.tool_call_id", "contents[3].parts[1].functionResponse.id"],
    ["messages[3].parts[0].tool_result.parts[0]", "contents[3].parts[1].functionResponse.response"],
    ["messages[3].parts[0].tool_result.parts[2]", "contents[3].parts[1].functionResponse.parts[1]"],
    ["messages[4].parts[0]", "contents[3].parts[0]"],
    ["messages[4].parts", "contents[3].parts"],
    ["messages", "contents"],
    ["tools[0].function.parameters_json.x", "tools[0].functionDeclarations[0].parameters.x"],
    ["tools[0].function.name", "tools[0].functionDeclarations[0].name"],
    ["tool_choice", "toolConfig.functionCallingConfig"],
    ["response_format.json_schema.schema_json.x", "generationConfig.responseSchema.x"],
    ["top_k", "generationConfig.topK"],
    ["reasoning.max_tokens", "generationConfig.thinkingConfig.thinkingBudget"],
    ["metadata.a", "labels.a"],
    ["model", "model"],
  ])("%s is %s", (path, name) => {
    expect(nameOf(path)).toBe(name);
  });
});

describe("a request to count", () => {
  it("has the fields of a request, or a whole one", () => {
    const outer = readCountRequest({ contents: HI, systemInstruction: { parts: [{ text: "S" }] } }, "models/m");
    expect(outer.request).toMatchObject({ model: "m" });
    expect(outer.request.messages).toHaveLength(2);
    const inner = readCountRequest({ generate_content_request: { model: "models/m", contents: HI } }, "m");
    expect(inner.request.messages).toHaveLength(1);
    expect(inner.nameOf("messages[0].parts[0]")).toBe("generateContentRequest.contents[0].parts[0]");
    expect(failureOf(() => readCountRequest({}, "m")).param).toBe("contents");
  });
});
