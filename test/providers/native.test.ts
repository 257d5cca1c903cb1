import { clone, create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  type CompletionRequest,
  CompletionRequestSchema,
} from "../../gen/parley/v1/completion_pb.js";
import {
  DocumentUnit,
  type Message,
  type MessageSchema,
  type Part,
  PartSchema,
  Role,
} from "../../gen/parley/v1/message_pb.js";
import { ToolMode, ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { ChoiceWriter } from "../../src/core/chunks.ts";
import { AnswerStream, toAnswer as readAnthropic } from "../../src/providers/anthropic/response.ts";
import { toAnswer as readGemini } from "../../src/providers/gemini/response.ts";
import { DIALECTS } from "../properties/dialects.ts";
import { fold } from "../support/fold.ts";

type MessageInit = Exclude<MessageInitShape<typeof MessageSchema>, Message>;

const MIB = 1024 * 1024;
const { CHARACTERS, PAGES, BLOCKS } = DocumentUnit;
const NAMES = ["anthropic", "gemini", "openai", "openai-responses"] as const;

const native = (dialect: string, block: object) =>
  ({ kind: { case: "native", value: { dialect, json: JSON.stringify(block) } } }) as const;
const text = (value: string) => ({ kind: { case: "text", value } }) as const;

function translate(
  name: string,
  request: MessageInitShape<typeof CompletionRequestSchema>,
): {
  readonly body: Record<string, unknown>;
  readonly omitted: readonly string[];
} {
  const dialect = DIALECTS.find((each) => each.name === name)!;
  const [model] = Object.values(dialect.models);
  const { body, omitted } = dialect.translate(create(CompletionRequestSchema, request), model!, { mode: "whole" });
  return { body: JSON.parse(body.toString()) as Record<string, unknown>, omitted: omitted.map(({ field }) => field) };
}

/** A part, or a tool, of a kind that this version does not know. */
const later = () => ({ $unknown: [{ no: 100, wireType: WireType.Varint, data: new Uint8Array([1]) }] });

describe.each(NAMES)("a request with unknown kinds to a provider of the dialect %s", (name) => {
  it("is the request without them", () => {
    const call = { kind: { case: "toolCall", value: { id: "c", name: "f" } } } as const;
    const result = { kind: { case: "toolResult" as const, value: { toolCallId: "c", parts: [text("It is.")] } } };
    const own = { kind: { case: "function", value: { name: "f" } } } as const;
    const turns = [
      [Role.SYSTEM, text("Be brief.")],
      [Role.USER, text("Look.")],
      [Role.ASSISTANT, call],
      [Role.TOOL, result],
    ] as const;
    const plain = create(CompletionRequestSchema, {
      model: "m",
      messages: turns.map(([role, part]): MessageInit => ({ role, parts: [part] })),
      tools: [own],
    });
    const mixed = clone(CompletionRequestSchema, plain);
    for (const { parts } of mixed.messages) {
      for (const { kind } of parts)
        if (kind.case === "toolResult") kind.value.parts.push(Object.assign(create(PartSchema), later()));
      parts.push(Object.assign(create(PartSchema), later()));
    }
    mixed.tools.push(Object.assign(create(ToolSchema), later()));
    const dialect = DIALECTS.find((each) => each.name === name)!;
    const [model] = Object.values(dialect.models);
    const bodyOf = (request: CompletionRequest): unknown =>
      JSON.parse(dialect.translate(request, model!, { mode: "whole" }).body.toString());
    expect(bodyOf(mixed)).toEqual(bodyOf(plain));
  });
});

describe.each(NAMES)("native blocks to a provider of the dialect %s", (name) => {
  it("are sent as they are if they are of its dialect, and left out and reported if not", () => {
    const blocks = NAMES.map((each) => native(each, { type: `block_of_${each}`, "1e400": [null, "é"] }));
    const { body, omitted } = translate(name, {
      messages: [{ role: Role.USER, parts: [text("Look."), ...blocks] }],
    });
    for (const each of NAMES) {
      const sent = JSON.stringify(body).includes(JSON.stringify({ type: `block_of_${each}`, "1e400": [null, "é"] }));
      expect([each, sent]).toEqual([each, each === name]);
    }
    expect(omitted).toEqual(NAMES.flatMap((each, index) => (each === name ? [] : [`messages[0].parts[${index + 1}]`])));
  });

  it("are tools too, beside the caller's own and alone", () => {
    const tools = NAMES.map((each) => native(each, { type: `tool_of_${each}` }));
    const own = { kind: { case: "function", value: { name: "f", parametersJson: "" } } } as const;
    const messages = [{ role: Role.USER, parts: [text("Search.")] }];
    for (const functions of [[], [own]]) {
      const { body, omitted } = translate(name, { messages, tools: [...functions, ...tools] });
      const sent = JSON.stringify(body.tools);
      expect(sent).toContain(`{"type":"tool_of_${name}"}`);
      for (const other of NAMES.filter((each) => each !== name)) expect(sent).not.toContain(`"tool_of_${other}"`);
      expect(sent.includes('"f"')).toBe(functions.length > 0);
      expect(omitted).toHaveLength(NAMES.length - 1);
    }
  });

  it("are not restricted by allowed tools", () => {
    const own = ["f", "g"].map((each) => ({ kind: { case: "function", value: { name: each } } }) as const);
    const tools = [...own, native(name, { type: "search_20260101", name: "search" })];
    const messages = [{ role: Role.USER, parts: [text("Search.")] }];
    const allowed = { mode: ToolMode.AUTO, names: ["f"] };
    const toolChoice = { choice: { case: "allowed", value: allowed } } as const;
    const { body, omitted } = translate(name, { messages, tools, toolChoice });
    expect(JSON.stringify(body.tools)).toContain("search_20260101");
    const isAllowed = JSON.stringify(body.tool_choice ?? {}).includes("search_20260101");
    expect(isAllowed).toBe(name.startsWith("openai"));
    expect(omitted).toEqual([]);
  });

  it("leave no empty list of tools", () => {
    const other = NAMES.find((each) => each !== name);
    const messages = [{ role: Role.USER, parts: [text("Search.")] }];
    const choice = { choice: { case: "mode", value: ToolMode.AUTO } } as const;
    const { body } = translate(name, { messages, tools: [native(other!, { type: "x" })], toolChoice: choice });
    expect(body).not.toHaveProperty("tools");
    expect(body).not.toHaveProperty("tool_choice");
    expect(body).not.toHaveProperty("toolConfig");
  });
});

const SEARCH = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "tides" } };
const FOUND = {
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_1",
  content: [{ type: "web_search_result", url: "https://example.com/", title: "Tides", encrypted_content: "EqgfCio" }],
};

describe("what a provider of the Anthropic dialect ran itself", () => {
  const answer = {
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "I look." }, SEARCH, FOUND, { type: "text", text: "Twice a day." }],
    stop_reason: "end_turn",
    usage: { input_tokens: 1, output_tokens: 2 },
  };

  it("is in the answer in its place, and is sent back unchanged", () => {
    const message = readAnthropic(answer).choices[0]!.message!;
    expect(message.parts.map(({ kind }) => kind.case)).toEqual(["text", "native", "native", "text"]);
    expect(backTo("anthropic", message)).toMatchObject({ messages: { 1: { content: answer.content } } });
  });

  it("is the same in a stream, whose input comes in pieces", () => {
    const stream = new AnswerStream();
    const chunks: CompletionChunk[] = [];
    const events = [
      { type: "message_start", message: { usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { ...SEARCH, input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"query":' } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '"tides"}' } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: FOUND },
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "pause_turn" }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ];
    for (const event of events) stream.read({ event: "", data: JSON.stringify(event) }, chunks);
    const { parts } = fold(chunks).choices[0]!.message!;
    expect(parts.map(jsonOf)).toEqual([SEARCH, FOUND]);
  });
});

describe("what a provider of the Gemini dialect ran itself", () => {
  it("is in the answer in its place, with its signature, and is sent back unchanged", () => {
    const parts = [
      { text: "I compute." },
      { executableCode: { language: "PYTHON", code: "print(1+1)" }, thoughtSignature: "c2ln" },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2" } },
      { text: "Two." },
    ];
    const answer = { candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] };
    const message = readGemini(answer).choices[0]!.message!;
    expect(message.parts.map(({ kind }) => kind.case)).toEqual(["text", "native", "native", "text"]);
    expect(backTo("gemini", message)).toMatchObject({ contents: { 1: { parts } } });
  });
});

describe("citations of an Anthropic answer", () => {
  const passage = { cited_text: "Twice.", document_index: 1, document_title: "Tides" };
  const found = { type: "web_search_result_location", url: "https://example.com/", title: "Tides", cited_text: "Two." };
  const OF_TOMORROW = { type: "of_a_later_version", signature: "c2ln" };
  const WITHOUT_PAGE = { ...found, url: null };
  const citations = [
    { type: "char_location", ...passage, start_char_index: 3, end_char_index: 9 },
    { type: "page_location", ...passage, start_page_number: 1, end_page_number: 2 },
    { type: "content_block_location", ...passage, start_block_index: 0, end_block_index: 1 },
    found,
    OF_TOMORROW,
    WITHOUT_PAGE,
  ];
  const $typeName = "parley.v1.Citation";
  const documentOf = (unit: DocumentUnit, start: number, end: number): object => {
    const value = { $typeName: "parley.v1.DocumentRange", documentIndex: 1, unit, start, end };
    return { $typeName, source: { case: "document", value }, title: "Tides", citedText: "Twice." };
  };
  const nativeOf = (words: object): object => {
    const value = { $typeName: "parley.v1.NativeBlock", dialect: "anthropic", json: JSON.stringify(words) };
    return { $typeName, source: { case: "native", value }, title: "", citedText: "" };
  };
  const expected = [
    documentOf(CHARACTERS, 3, 9),
    documentOf(PAGES, 1, 2),
    documentOf(BLOCKS, 0, 1),
    { $typeName, source: { case: "url", value: "https://example.com/" }, title: "Tides", citedText: "Two." },
    nativeOf({ type: "of_a_later_version" }),
    nativeOf(WITHOUT_PAGE),
  ];

  it("are citations of all of the text that they belong to", () => {
    const content = [
      { type: "text", text: "It is so: " },
      { type: "text", text: "twice a day.", citations },
    ];
    const answer = { type: "message", role: "assistant", content, stop_reason: "end_turn", usage: {} };
    const { parts } = readAnthropic(answer).choices[0]!.message!;
    expect(parts.map((part) => part.citations)).toEqual([[], expected]);
  });

  it("are the same in a stream, and none without a text", () => {
    const open = (index: number): object => ({
      type: "content_block_start",
      index,
      content_block: { type: "text", text: "", citations: [] },
    });
    const add = (index: number, delta: object): object => ({ type: "content_block_delta", index, delta });
    const cite = (index: number): object[] =>
      citations.map((citation) => add(index, { type: "citations_delta", citation }));
    const events = [
      open(0),
      ...cite(0),
      { type: "content_block_stop", index: 0 },
      open(1),
      ...cite(1),
      add(1, { type: "text_delta", text: "twice a day." }),
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ];
    const stream = new AnswerStream();
    const chunks: CompletionChunk[] = [];
    for (const event of events) stream.read({ event: "", data: JSON.stringify(event) }, chunks);
    const { parts } = fold(chunks).choices[0]!.message!;
    expect(parts.map(({ kind }) => kind.value)).toEqual(["twice a day."]);
    expect(parts[0]!.citations).toEqual(expected);
  });

  it.each(NAMES)("are asked for with the document, by a provider that can: %s", (name) => {
    const file = { source: { case: "data", value: Buffer.from("%PDF-1.4") }, citations: true } as const;
    const parts = [{ kind: { case: "file", value: file } } as const, text("When?")];
    const { body, omitted } = translate(name, { messages: [{ role: Role.USER, parts }] });
    expect(JSON.stringify(body).includes('"citations":{"enabled":true}')).toBe(name === "anthropic");
    expect(omitted).toEqual(name === "anthropic" ? [] : ["messages[0].parts[0].file.citations"]);
  });
});

describe("a native block in a stream", () => {
  it("comes in pieces below 1 MiB that do not split a character", () => {
    fc.assert(
      fc.property(fc.constantFrom("a", "é", "\u4e2d", "\u{1f30a}"), fc.nat(5), (unit, shift) => {
        const json = JSON.stringify("x".repeat(shift) + unit.repeat(700_000));
        const out: CompletionChunk[] = [];
        new ChoiceWriter(0).native({ dialect: "anthropic", json }, out);
        for (const chunk of out) expect(toBinary(CompletionChunkSchema, chunk).length).toBeLessThan(MIB);
        const pieces = out.flatMap(({ event }) => (event.case === "partDelta" ? [event.value.content.value] : []));
        expect(pieces.every((piece) => typeof piece === "string" && piece.isWellFormed())).toBe(true);
        expect(fold(out).choices[0]!.message!.parts.map(jsonOf)).toEqual([JSON.parse(json)]);
      }),
      { numRuns: 12 },
    );
  });
});

function jsonOf({ kind }: Part): unknown {
  return kind.case === "native" ? JSON.parse(kind.value.json) : kind.case;
}

/** The body of a request that continues a conversation after `message`. */
function backTo(name: string, message: Message): Record<string, unknown> {
  const said = (value: string) => ({ role: Role.USER, parts: [text(value)] });
  return translate(name, { messages: [said("First."), message, said("Go on.")] }).body;
}

describe("JSON in a conversation", () => {
  /** A JSON object with this many values. */
  const objectOf = (values: number): string => `{"a":[${"0,".repeat(values - 1)}0]}`;

  it("of tool results is sent as text to Gemini beyond the size limits of a request", () => {
    const messages: MessageInit[] = [{ role: Role.USER, parts: [text("Go.")] }];
    for (const values of [60_000, 60_000, 10]) {
      const toolCall = { id: "1", name: "f", input: { case: "argumentsJson", value: "{}" } } as const;
      const toolResult = { toolCallId: "1", parts: [text(objectOf(values))] };
      messages.push({ role: Role.ASSISTANT, parts: [{ kind: { case: "toolCall", value: toolCall } }] });
      messages.push({ role: Role.TOOL, parts: [{ kind: { case: "toolResult", value: toolResult } }] });
    }
    const { body } = translate("gemini", { messages });
    const [, , first, , second, , third] = (
      body as { contents: { parts: { functionResponse: { response: object } }[] }[] }
    ).contents;
    const keys = [first, second, third].map((content) => Object.keys(content!.parts[0]!.functionResponse.response));
    expect(keys).toEqual([["a"], ["output"], ["a"]]);
  });

  it("of a cache mark inside a native block counts as one of an hour, however it is written", () => {
    const marked = `{"type":"text","text":"x","cache\\u005fcontrol":{"type":"ephemeral","ttl":"1h"}}`;
    const part = { kind: { case: "native", value: { dialect: "anthropic", json: marked } } } as const;
    const dialect = DIALECTS.find(({ name }) => name === "anthropic")!;
    const request = create(CompletionRequestSchema, { messages: [{ role: Role.USER, parts: [part] }] });
    expect(dialect.translate(request, Object.values(dialect.models)[0]!, { mode: "whole" }).sent.cacheWrite).toBe(
      "hour",
    );
  });

  it("of native blocks with unusual contents is sent as it is", () => {
    const strange = [
      { type: "tool_result", tool_use_id: "1", content: null },
      { type: "text", text: {} },
    ];
    const marked = { ...text("x"), cacheMark: { ttl: { seconds: 3600n } } };
    const { body } = translate("anthropic", {
      messages: [
        { role: Role.USER, parts: [marked, native("anthropic", strange[0]!)] },
        { role: Role.ASSISTANT, parts: [native("anthropic", strange[1]!)] },
      ],
    });
    expect(JSON.stringify(body)).toContain(JSON.stringify(strange[0]));
    expect(JSON.stringify(body)).toContain(JSON.stringify(strange[1]));
  });
});
