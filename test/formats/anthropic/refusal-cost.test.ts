import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMessagesRequest } from "../../../src/formats/anthropic/request.ts";
import { writeState } from "../../../src/formats/anthropic/state.ts";
import { costOf, costOfRefusal, keys, many, refusalOf } from "../refusal-cost.ts";

const read = (json: unknown) => readMessagesRequest({ json, headers: {} });

const body = (messages: string, more = ""): string => `{"model":"m","messages":${messages}${more}}`;
const said = (content: string): string => body(`[{"role":"user","content":${content}}]`);
const HI = '[{"role":"user","content":"hi"}]';

const BODIES: Readonly<Record<string, string>> = {
  "numbers as content": said(many(99_000, "0")),
  "few numbers as content of many messages": body(many(1_900, `{"role":"user","content":${many(40, "0")}}`)),
  "numbers as messages": body(many(99_000, "0")),
  "messages without anything": body(many(99_000, "{}")),
  "too many messages": body(many(24_000, '{"role":"user","content":""}')),
  "too many blocks": said(many(10_000, '{"type":"text","text":""}')),
  "blocks of no type": said(many(99_000, "{}")),
  "texts of a wrong type": said(many(24_000, '{"type":"text","text":0}')),
  "pictures of a wrong type": said(many(3_900, '{"type":"image","source":{"type":"url","url":0}}')),
  "results of numbers": said(`[{"type":"tool_result","tool_use_id":"t","content":${many(90_000, "0")}}]`),
  "the last block wrong": said(`[${'{"type":"text","text":"a"},'.repeat(3_999)}0]`),
  "a system of numbers": body(HI, `,"system":${many(99_000, "0")}`),
  "numbers as tools": body(HI, `,"tools":${many(99_000, "0")}`),
  "tools without a name": body(HI, `,"tools":${many(49_000, '{"type":"custom"}')}`),
  "names that are none": body(HI, `,"tools":${many(1_900, '{"name":"?","input_schema":{}}')}`),
  "unknown keys beside a wrong one": `{"model":"m","messages":0,${keys(49_000)}}`,
  "unknown keys": `{"model":"m","messages":[],${keys(49_000)}}`,
  "empty texts to stop at": body(HI, `,"stop_sequences":${many(99_000, '""')}`),
  "documents in documents": said(
    many(900, `{"type":"document","source":{"type":"content","content":${many(20, "0")}}}`),
  ),
};

describe("a malformed request", () => {
  it.each(Object.entries(BODIES))("costs about as much as parsing it: %s", (_, text) => {
    const { workMs, limitMs } = costOfRefusal(text, read);
    expect(workMs).toBeLessThanOrEqual(limitMs);
  });
});

describe("a turn of the model", () => {
  it("with thousands of calls and states of its text is read in time proportional to its size", () => {
    const turn = (count: number, block: object): object => ({ role: "assistant", content: Array(count).fill(block) });
    const text = turn(1, { type: "text", text: "a" });
    const calls = turn(4000, { type: "tool_use", id: "c", name: "f", input: {} });
    const states = turn(4000, {
      type: "thinking",
      thinking: "",
      signature: writeState({ toolCall: undefined, signature: "s" }),
    });
    const readAll = (...messages: readonly object[]): unknown => read({ model: "m", messages });
    const { workMs, limitMs } = costOf(
      () => readAll(text, calls, states),
      () => [readAll(text, calls), readAll(text, states)],
    );
    expect(workMs).toBeLessThanOrEqual(limitMs);
  });
});

const TYPES = [
  "text",
  "image",
  "document",
  "tool_use",
  "tool_result",
  "thinking",
  "redacted_thinking",
  "server_tool_use",
  "content",
  "base64",
  "url",
  "file",
  "custom",
  "enabled",
  "json_schema",
];
const KEYS = [
  "type",
  "text",
  "source",
  "content",
  "data",
  "media_type",
  "id",
  "name",
  "input",
  "tool_use_id",
  "thinking",
];

/** JSON of the words of the format, rightly put together or not. */
const { json: anyJson } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, depthSize: "small" },
    fc.constantFrom<unknown>("a", "YQ==", 1, null, true, ...TYPES),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie("json"), { maxKeys: 5 }),
    fc
      .record({
        type: fc.constantFrom(...TYPES),
        rest: fc.dictionary(fc.constantFrom(...KEYS), tie("json"), { maxKeys: 5 }),
      })
      .map(({ type, rest }) => ({ text: "a", data: "YQ==", media_type: "image/png", content: [], ...rest, type })),
  ),
}));

describe("any request", () => {
  it("is read, or refused by a failure that names a field", () => {
    const fields = fc.dictionary(
      fc.constantFrom(
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "metadata",
        "cache_control",
        "stop_sequences",
      ),
      anyJson,
      { maxKeys: 2 },
    );
    const role = fc.constantFrom("user", "assistant", "system");
    const messages = fc.array(fc.record({ role, content: fc.array(anyJson, { maxLength: 3 }) }), { maxLength: 3 });
    fc.assert(
      fc.property(fields, messages, (more, conversation) => {
        const failure = refusalOf(read, () => ({ model: "m", messages: conversation, ...more }));
        expect(failure?.code ?? "invalid_request").toBe("invalid_request");
        expect(failure?.violations.length ?? 1).toBeGreaterThan(0);
      }),
      { numRuns: 2000 },
    );
  });

  it("keeps blocks inside a result or a document as they are where no other dialect knows them", () => {
    const inner = { type: "thinking" };
    const messages = [
      {
        role: "user",
        content: [
          { type: "document", source: { type: "content", content: [inner, { type: "document", source: 7 }] } },
          { type: "tool_result", tool_use_id: "t", content: [inner, { type: "tool_use" }] },
        ],
      },
    ];
    const { request } = read({ model: "m", messages });
    const kinds = request.messages.map(({ parts }) => parts.map(({ kind }) => kind.case));
    expect(kinds).toEqual([["toolResult"], ["native", "native"]]);
  });
});
