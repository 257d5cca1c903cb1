import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { CompletionChunkSchema, CompletionSchema, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { EventWriter } from "../../../src/formats/openai-responses/events.ts";
import { itemsOf, keepingOf, KeptStream } from "../../../src/formats/openai-responses/keep.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { writeResponse } from "../../../src/formats/openai-responses/response.ts";
import { EventStream } from "../../../src/formats/openai-responses/stream.ts";
import { toChunks } from "../../support/to-chunks.ts";
import { anyStream, settled } from "./support.ts";

const COMPLETION = create(CompletionSchema, {
  id: "chatcmpl-1",
  model: "a",
  choices: [
    {
      finishReason: FinishReason.STOP,
      message: {
        parts: [
          { kind: { case: "reasoning", value: { text: "Hm" } }, signature: "c2ln" },
          { kind: { case: "text", value: "Yes." } },
        ],
      },
    },
  ],
});
const CHUNKS = [
  create(CompletionChunkSchema, { event: { case: "start", value: { id: COMPLETION.id, model: COMPLETION.model } } }),
  ...toChunks({ choices: COMPLETION.choices, usage: undefined }),
  create(CompletionChunkSchema, { event: { case: "report", value: {} } }),
];
const ASKED = { model: "a", input: "Hi" };
const asked = (more: object = {}) => readResponsesRequest({ ...ASKED, ...more }, { keeps: true });

describe("what is kept of a response", () => {
  it("has the conversation, and state of the provider that the caller did not ask for (trap 98)", () => {
    const read = asked();
    const text = writeResponse(COMPLETION, read);
    expect(text).not.toContain("encrypted_content");
    const { id, content } = keepingOf(read)!.whole(COMPLETION, text);
    expect(id).toBe("resp_1");
    expect(itemsOf(content)).toMatchObject([
      { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] },
      { type: "reasoning", encrypted_content: expect.any(String) as string },
      { type: "message", content: [{ type: "output_text", text: "Yes." }] },
    ]);
    expect(JSON.parse(content.toString())).toMatchObject({ response: JSON.parse(text as string) as object });
  });

  it("is the same of a stream", () => {
    const read = asked({ stream: true });
    const stream = new KeptStream(read, "req_1");
    expect(stream.kept).toBeUndefined();
    const out = stream.write(CHUNKS);
    expect(out).not.toContain("encrypted_content");
    const { id, content } = stream.kept!;
    expect(id).toBe("resp_1");
    expect(itemsOf(content)).toMatchObject([
      { role: "user" },
      { type: "reasoning", encrypted_content: expect.any(String) as string },
      { type: "message", content: [{ text: "Yes." }] },
    ]);
  });

  it.each([
    ["with state of the provider", CHUNKS],
    ["without any", CHUNKS.filter(({ event }) => event.case !== "partFinish")],
  ])("takes no second writing of a stream's events, %s", (_, chunks) => {
    const written = vi.spyOn(EventWriter.prototype, "write");
    const read = asked({ stream: true });
    const events = new EventStream(read, "req_1").write(chunks);
    const count = written.mock.calls.length;
    const stream = new KeptStream(read, "req_1");
    expect(stream.write(chunks)).toBe(events);
    expect(stream.kept).toBeDefined();
    expect(written.mock.calls).toHaveLength(2 * count);
  });

  it("has the same items of a stream as an answer to a caller who asked for state", () => {
    fc.assert(
      fc.property(anyStream, (chunks) => {
        const stream = new KeptStream(asked({ stream: true }), "req_1");
        stream.write(chunks);
        const whole = new KeptStream(asked({ stream: true, include: ["reasoning.encrypted_content"] }), "req_1");
        whole.write(chunks);
        expect(settled(itemsOf(stream.kept!.content))).toEqual(settled(itemsOf(whole.kept!.content)));
      }),
    );
  });

  it("has items with state only where there is state", () => {
    const stream = new KeptStream(asked({ stream: true }), "req_1");
    stream.write(CHUNKS.filter(({ event }) => event.case !== "partFinish"));
    expect(JSON.parse(stream.kept!.content.toString())).toMatchObject({ state: null });
    expect(itemsOf(stream.kept!.content)).toMatchObject([{ role: "user" }, { type: "reasoning" }, { type: "message" }]);
  });

  it("is nothing with store: false, and where nothing is kept", () => {
    expect(keepingOf(asked({ store: false }))).toBeUndefined();
    expect(keepingOf(readResponsesRequest(ASKED))).toBeUndefined();
  });

  it("is no longer promised in an answer that could not be kept", () => {
    const { withdraw, endBytes } = keepingOf(asked())!;
    const text = writeResponse(COMPLETION, asked({ metadata: { a: '"store": true}' } })) as string;
    expect(withdraw(text.slice(-endBytes))).toBe('"store":false}');
    expect(withdraw(`{"response":${text},"sequence_number":9}\n\n`)).toBe(
      `{"response":${text.slice(0, -endBytes)}"store":false},"sequence_number":9}\n\n`,
    );
  });
});

describe("a request that continues a kept response", () => {
  const before = [{ type: "message", role: "user", content: "Hi" }];

  it("begins with its items", () => {
    const { request, conversation } = readResponsesRequest(
      { ...ASKED, input: "And?", previous_response_id: "resp_1" },
      { keeps: true, before },
    );
    expect(request.messages).toHaveLength(2);
    expect(JSON.parse(conversation)).toHaveLength(2);
  });

  it("names its own fields, and those of the history as one", () => {
    const own = [
      { role: "user", content: "And?" },
      { type: "reasoning", encrypted_content: "foreign" },
    ];
    const { nameOf, unrecognized } = readResponsesRequest(
      { ...ASKED, input: own, previous_response_id: "resp_1" },
      { keeps: true, before: [{ type: "reasoning", encrypted_content: "foreign" }, ...before] },
    );
    expect(unrecognized).toEqual(["input[1]"]);
    expect(nameOf("messages[0].parts[0]")).toBe("previous_response_id");
    expect(nameOf("messages[1].parts[0]")).toMatch(/^input\[0\]/);
  });

  it("is refused when the conversation is too large", () => {
    const large = { type: "message", role: "user", content: "x".repeat(32 * 1024 * 1024) };
    const read = (): unknown =>
      readResponsesRequest({ ...ASKED, previous_response_id: "resp_1" }, { keeps: true, before: [large] });
    expect(read).toThrow("has become larger than 32 MiB");
  });
});
