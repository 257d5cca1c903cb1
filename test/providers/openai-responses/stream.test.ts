import { describe, expect, it } from "vitest";
import { MAX_PARTS } from "../../../src/core/validate.ts";
import { toAnswer } from "../../../src/providers/openai-responses/response.ts";
import { readState } from "../../../src/providers/openai-responses/state.ts";
import { readFixture } from "../openai/fixture.ts";
import { folded, plain, plainAnswer } from "../openai/reading.ts";
import { readStream, toSse } from "./reading.ts";

type Event = object & { readonly type: string };

const SIZES = [Infinity, 7, 1];
const FIXTURES = [
  "r02-text-stream",
  "r03-tools-parallel-stream",
  "r05-reasoning-stream",
  "r06-json-schema-stream",
  "r08-refusal-stream",
  "r11-codex-tools-stream",
];

/** Events that begin and end a response with these between them. */
const around = (events: readonly Event[], end: object = {}, type = "response.completed"): Buffer =>
  toSse({ type: "response.created", response: { status: "in_progress", output: [] } } as Event, ...events, {
    type,
    response: { status: type.slice("response.".length), output: [], ...end },
  } as Event);
const added = (output_index: number, item: object): Event =>
  ({ type: "response.output_item.added", output_index, item }) as Event;
const done = (output_index: number, item: object): Event =>
  ({ type: "response.output_item.done", output_index, item }) as Event;
const textDelta = (delta: string, output_index = 0, content_index = 0): Event =>
  ({ type: "response.output_text.delta", output_index, content_index, delta }) as Event;
const message = (...content: object[]) => ({ type: "message", role: "assistant", content });
const outputText = (text: string, more: object = {}) => ({ type: "output_text", text, ...more });
const call = (more: object = {}) => ({ type: "function_call", id: "fc_1", call_id: "1", name: "f", ...more });

const partsOf = (bytes: Buffer): unknown => {
  const { chunks, failure } = readStream(bytes);
  expect(failure).toBeUndefined();
  return (folded(chunks) as { choices: [{ message: { parts: unknown } }] }).choices[0].message.parts;
};

describe.each(FIXTURES)("a stream of Parley's own, %s", (name) => {
  const bytes = readFixture(`formats/${name}`).bytes("expected-reply.sse");
  // The last event has the whole response.
  const last = bytes.toString().trimEnd().split("data: ").at(-1)!;
  const whole = toAnswer((JSON.parse(last) as { response: unknown }).response);

  it("is what its last event says", () => {
    const { chunks, failure } = readStream(bytes);
    expect(failure).toBeUndefined();
    expect(folded(chunks)).toEqual(plainAnswer(whole));
  });

  it.each(SIZES)("is the same in pieces of %s bytes", (size) => {
    expect(readStream(bytes, Math.min(size, bytes.length))).toEqual(readStream(bytes));
  });

  it("is incomplete without its last event", () => {
    const cut = bytes.subarray(0, bytes.indexOf("event: response.completed"));
    expect(readStream(cut).failure).toMatchObject({ code: "upstream_protocol" });
  });
});

describe("a stream", () => {
  it("ends with a failure in the middle", () => {
    const bytes = readFixture("formats/r10-failed-midstream").bytes("expected-reply.sse");
    for (const size of SIZES) {
      const { chunks, failure } = readStream(bytes, Math.min(size, bytes.length));
      expect(plain(chunks)).toEqual([{ delta: { text: "Half an " } }]);
      expect(failure).toMatchObject({
        code: "upstream_unavailable",
        message: "The upstream provider failed while generating the response.",
      });
    }
  });

  it("gives its usage, and why it is incomplete", () => {
    const end = {
      incomplete_details: { reason: "max_output_tokens" },
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
    };
    const { chunks } = readStream(around([textDelta("Hi")], end, "response.incomplete"));
    expect(plain(chunks)).toEqual([
      { delta: { text: "Hi" } },
      { choiceFinish: { finishReason: "FINISH_REASON_LENGTH", nativeFinishReason: "max_output_tokens" } },
      { usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } },
    ]);
  });

  it.each<[string, Event, object]>([
    [
      "an error event",
      { type: "error", code: "rate_limit_exceeded", message: "Slow down" } as Event,
      { code: "upstream_rate_limited" },
    ],
    [
      "a nested error",
      { type: "error", error: { code: "server_error", message: "x" } } as Event,
      { code: "upstream_unavailable" },
    ],
    [
      "an error in place of an event",
      { type: "", error: { code: "insufficient_quota", message: "x" } } as Event,
      { code: "upstream_unavailable", transient: false },
    ],
    [
      "a failed response",
      {
        type: "response.failed",
        response: { status: "failed", error: { code: "server_is_overloaded", message: "x" } },
      } as Event,
      { detail: "upstream_overloaded" },
    ],
    [
      "a prompt that is not allowed",
      {
        type: "response.failed",
        response: { status: "failed", error: { code: "invalid_prompt", message: "flagged" } },
      } as Event,
      { code: "upstream_rejected" },
    ],
  ])("fails with %s, as it would without a stream", (_, event, failure) => {
    expect(readStream(toSse(event)).failure).toMatchObject(failure);
  });

  /** As Azure refuses a prompt within a stream. */
  const UNEXPLAINED = { type: "response.failed", response: { status: "failed", error: null, usage: null } } as Event;
  const BECAUSE = { type: "error", error: { code: "content_policy_violation", message: "flagged" } } as Event;
  const USED = { type: "response.failed", response: { status: "failed", usage: { input_tokens: 7 } } } as Event;

  it.each<[string, Event[], object]>([
    ["the error after it", [UNEXPLAINED, BECAUSE], { code: "upstream_rejected", message: "flagged", refused: false }],
    ["none", [UNEXPLAINED], { code: "upstream_unavailable", refused: true }],
    [
      "none, but a count",
      [USED],
      { code: "upstream_unavailable", refused: false, usage: expect.anything() as unknown },
    ],
  ])("fails with a response that names no error: %s", (_, events, failure) => {
    expect(readStream(toSse(...events)).failure).toMatchObject(failure);
  });

  it("ends with a marker that came too early as one that was cut", () => {
    const bytes = Buffer.concat([toSse(textDelta("Hi")), Buffer.from("data: [DONE]\n\n")]);
    expect(readStream(bytes).failure).toMatchObject({ code: "upstream_protocol" });
  });

  it("is read by the types in its data, by those of its events without them, and without unknown ones", () => {
    const bytes = Buffer.from(
      'event: response.output_text.delta\ndata: {"output_index":0,"content_index":0,"delta":"a"}\n\n' +
        'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"b","obfuscation":"xyz"}\n\n' +
        'data: {"type":"keepalive"}\n\ndata: {"type":"response.of_a_later_version"}\n\n' +
        'event: response.completed\ndata: {"response":{"output":[]}}\n\n',
    );
    expect(partsOf(bytes)).toEqual([{ text: "ab" }]);
  });

  it("has what its pieces left out, from the end of a text, of an item, or of the response", () => {
    const item = message(outputText("Hello"), { type: "refusal", refusal: "No" });
    const part = { type: "response.content_part.done", output_index: 0, content_index: 0, part: outputText("Hello") };
    const expected = [{ text: "Hello" }, { refusal: "No" }];
    expect(partsOf(around([textDelta("Hel"), part as Event, done(0, item)]))).toEqual(expected);
    expect(partsOf(around([textDelta("Hel"), done(0, item)], { output: [item] }))).toEqual(expected);
    expect(partsOf(around([textDelta("Hel")], { output: [item] }))).toEqual(expected);
    expect(partsOf(around([], { output: [item] }))).toEqual(expected);
  });

  it("has no item twice, where the last event leaves some out", () => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [{ text: "Hm." }] };
    const said = { ...message(outputText("Hi")), id: "msg_1" };
    const bytes = around([done(0, reasoning), done(2, said)], { output: [said] });
    expect(partsOf(bytes)).toEqual([{ reasoning: { text: "Hm." } }, { text: "Hi" }]);
  });

  it("has no piece twice, where the last event moves an item that has not ended", () => {
    const piece = { type: "response.function_call_arguments.delta", output_index: 1, delta: '{"a"' } as Event;
    const events = [added(1, call()), piece, added(2, { ...message(), id: "msg_1" }), textDelta("Hel", 2)];
    const output = [call({ arguments: '{"a":1}' }), { ...message(outputText("Hello")), id: "msg_1" }];
    expect(partsOf(around(events, { output }))).toEqual([
      { toolCall: { id: "1", name: "f", argumentsJson: '{"a":1}' } },
      { text: "Hello" },
    ]);
  });

  it("keeps apart the texts of a message, and those of different items", () => {
    const events = [textDelta("a"), textDelta("b", 0, 1), textDelta("c", 1), textDelta("d", 0, 1)];
    expect(partsOf(around(events))).toEqual([{ text: "a" }, { text: "b" }, { text: "c" }, { text: "d" }]);
  });

  it("has reasoning in one part, with a blank line between its summaries", () => {
    const summary = (delta: string, summary_index: number): Event =>
      ({ type: "response.reasoning_summary_text.delta", output_index: 0, summary_index, delta }) as Event;
    const whole = { type: "reasoning", summary: [{ text: "a1" }, { text: "b" }, { text: "c" }] };
    expect(partsOf(around([summary("a", 0), summary("1", 0), summary("b", 1), done(0, whole)]))).toEqual([
      { reasoning: { text: "a1\n\nb\n\nc" } },
    ]);
    const raw = { type: "response.reasoning_text.delta", output_index: 0, content_index: 0, delta: "a" } as Event;
    const both = { type: "reasoning", summary: [{ text: "short" }], content: [{ text: "ab" }] };
    expect(partsOf(around([raw, done(0, both)]))).toEqual([{ reasoning: { text: "ab" } }]);
  });

  it("keeps the state of the finished item, not of the one that began", () => {
    const item = (encrypted_content: string) => ({ type: "reasoning", id: "rs_1", summary: [], encrypted_content });
    const { chunks } = readStream(around([added(0, item("begun")), done(0, item("whole")), textDelta("a", 1)]));
    const [{ end }] = plain(chunks) as [{ end: { signature: string } }];
    expect(Buffer.from(end.signature, "base64").toString()).toContain('"encrypted_content":"whole"');
  });

  it("has the state of reasoning that its last event encrypts, and where it belongs", () => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }] };
    const said = { ...message(outputText("Hi")), id: "msg_1" };
    const output = [{ ...reasoning, encrypted_content: "E" }, said];
    const { chunks, failure } = readStream(around([done(0, reasoning), done(1, said)], { output }));
    expect(failure).toBeUndefined();
    const { type: _, ...state } = output[0] as typeof reasoning;
    const { parts } = (folded(chunks) as { choices: [{ message: { parts: { signature?: string }[] } }] }).choices[0]
      .message;
    expect(parts).toMatchObject([{ reasoning: { text: "Hm." } }, { text: "Hi" }, { reasoning: {} }]);
    expect(parts.map(({ signature = "" }) => readState(signature))).toEqual([
      undefined,
      undefined,
      { reasoning: state, at: 0 },
    ]);
    // Nothing is said twice, where the end of the item had the state.
    const whole = around([done(0, output[0]!), done(1, said)], { output });
    expect(partsOf(whole)).toHaveLength(2);
  });

  it("has calls side by side, with what a server sends only at their end", () => {
    const input = (output_index: number, delta: string): Event =>
      ({ type: "response.function_call_arguments.delta", output_index, delta }) as Event;
    const events = [
      added(0, call({ arguments: "" })),
      added(1, { type: "custom_tool_call", call_id: "2", name: "c", input: "" }),
      input(0, '{"a"'),
      { type: "response.custom_tool_call_input.delta", output_index: 1, delta: "ra" } as Event,
      input(0, ":1}"),
      done(1, { type: "custom_tool_call", call_id: "2", name: "c", input: "raw" }),
      done(0, call({ arguments: '{"a":1}' })),
      input(2, "{"),
      done(2, call({ call_id: "3", arguments: "{}" })),
      added(3, call({ call_id: "4" })),
      done(3, call({ call_id: "4", arguments: "" })),
      added(4, call({ call_id: "5" })),
    ];
    expect(partsOf(around(events))).toEqual([
      { toolCall: { id: "1", name: "f", argumentsJson: '{"a":1}' } },
      { toolCall: { id: "2", name: "c", customInput: "raw" } },
      { toolCall: { id: "3", name: "f", argumentsJson: "{}" } },
      { toolCall: { id: "4", name: "f", argumentsJson: "{}" } },
      { toolCall: { id: "5", name: "f", argumentsJson: "{}" } },
    ]);
  });

  it("fails with a call that never had a name", () => {
    const piece = { type: "response.function_call_arguments.delta", output_index: 0, delta: "{}" } as Event;
    expect(readStream(around([piece])).failure).toMatchObject({ code: "upstream_protocol", requestBound: true });
  });

  it("has the sources of a text once, and those before it after it", () => {
    const annotation = { type: "url_citation", url: "https://a.example", title: "t", start_index: 0, end_index: 2 };
    const other = { ...annotation, url: "https://b.example" };
    const cited = { type: "response.output_text.annotation.added", output_index: 0, content_index: 0 };
    const item = message(outputText("Hi", { annotations: [annotation, other] }));
    const expected = [{ text: "Hi", citations: [{ url: "https://a.example" }, { url: "https://b.example" }] }];
    const first = { ...cited, annotation } as Event;
    expect(partsOf(around([textDelta("Hi"), first, done(0, item)]))).toMatchObject(expected);
    expect(partsOf(around([first, textDelta("Hi"), done(0, item)]))).toMatchObject(expected);
  });

  describe.each([
    ["named events", (events: readonly Event[]) => toSse(...events)],
    [
      "types in their data",
      (events: readonly Event[]) => Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")),
    ],
  ])("with %s", (_, write) => {
    it("may be as large as a whole response, though its last events repeat all probabilities", () => {
      const top_logprobs = Array.from({ length: 20 }, () => ({ token: "a", logprob: -1, bytes: [97] }));
      const logprob = { token: "a", logprob: -1, bytes: [97], top_logprobs };
      const logprobs = Array.from({ length: 700 }, () => logprob);
      const part = outputText("a".repeat(logprobs.length), { annotations: [], logprobs });
      const item = { ...message(part), id: "msg_1" };
      const place = { output_index: 0, content_index: 0 };
      const { chunks, failure } = readStream(
        write([
          added(0, { type: "message", id: "msg_1", content: [] }),
          ...logprobs.map(() => ({ ...textDelta("a"), logprobs: [logprob] })),
          { type: "response.output_text.done", ...place, text: part.text, logprobs } as Event,
          { type: "response.content_part.done", ...place, part } as Event,
          done(0, item),
          { type: "response.completed", response: { status: "completed", output: [item] } } as Event,
        ]),
      );
      expect(failure).toBeUndefined();
      expect(folded(chunks)).toMatchObject({ choices: [{ message: { parts: [{ text: part.text }] } }] });
    });

    it("has events that are not read, of any size", () => {
      const echoed = { status: "in_progress", output: [], tools: Array.from({ length: 200_000 }, () => 0) };
      const events = [{ type: "response.created", response: echoed } as Event, textDelta("a")];
      const end = { type: "response.completed", response: { status: "completed", output: [] } } as Event;
      expect(partsOf(write([...events, end]))).toEqual([{ text: "a" }]);
    });

    it("has no piece beyond the limit of an event", () => {
      const logprobs = Array.from({ length: 100_000 }, () => ({}));
      expect(readStream(write([{ ...textDelta("a"), logprobs } as Event])).failure).toMatchObject({
        code: "upstream_protocol",
      });
    });
  });

  it("has probabilities with its pieces, and no pictures in the making among its parts", () => {
    const logprobs = [{ token: "Hi", logprob: -0.5, top_logprobs: [{ token: "Ho", logprob: -1 }] }];
    const image = { type: "image_generation_call", id: "ig_1", result: "iVBORw==" };
    const partial = {
      type: "response.image_generation_call.partial_image",
      output_index: 1,
      partial_image_b64: "iVBORw==",
    };
    const events = [
      { ...textDelta("Hi"), logprobs } as Event,
      added(1, { ...image, result: null }),
      partial as Event,
      done(1, image),
    ];
    expect(partsOf(around(events))).toMatchObject([
      { text: "Hi", logprobs: [{ token: "Hi", top: [{ token: "Ho" }] }] },
      { image: { data: "iVBORw==", mediaType: "image/png" } },
    ]);
  });

  it("numbers pictures in the making by their items, where the provider does not", () => {
    const image = { type: "image_generation_call", id: "ig_1", result: "iVBORw==" };
    const partial = (output_index: number, more: object = {}): Event => {
      const type = "response.image_generation_call.partial_image";
      return { type, output_index, partial_image_b64: "iVBORw==", ...more } as Event;
    };
    const events = [partial(0), partial(0), done(0, image), partial(1), partial(1, { partial_image_index: 1 })];
    const numbers = readStream(around(events)).chunks.flatMap(({ event }) =>
      event.case === "partialImage" ? [event.value.index] : [],
    );
    expect(numbers).toEqual([0, 1, 0, 1]);
  });

  it.each<[string, (index: number) => Event]>([
    ["items", (index) => added(index, {})],
    ["texts", (index) => textDelta("a", 0, index)],
    [
      "summaries",
      (index) =>
        ({ type: "response.reasoning_summary_text.delta", output_index: 0, summary_index: index, delta: "a" }) as Event,
    ],
  ])("has at most as many %s as a message has parts", (_, event) => {
    const events = (count: number): Buffer => toSse(...Array.from({ length: count }, (_each, index) => event(index)));
    const cut = { message: "The upstream provider closed the stream before it was complete." };
    expect(readStream(events(MAX_PARTS)).failure).toMatchObject(cut);
    expect(readStream(events(MAX_PARTS + 1)).failure?.message).toContain("parts");
  });
});
