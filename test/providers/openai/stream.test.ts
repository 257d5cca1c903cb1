import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { AnswerStream } from "../../../src/providers/openai/response.ts";
import { readFixture } from "./fixture.ts";
import { everyBytes, folded, plain, readStream, readWhole, toSse } from "./reading.ts";

const chunk = (delta: unknown, finish: unknown = null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] });
const text = (content: string) => chunk({ content });
const stop = chunk({}, "stop");
const call = (...tool_calls: unknown[]) => chunk({ tool_calls });
const fn = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown) => ({
  index,
  id,
  type: "function",
  function: { name, arguments: args },
});

const delta = (content: object, partIndex = 0) => ({ delta: { ...content, ...(partIndex > 0 && { partIndex }) } });
const begin = (id: string, name: string, partIndex = 0, input: object = { argumentsJson: "" }) =>
  start({ toolCall: { id, name, ...input } }, partIndex);
const start = (part: object, partIndex = 0) => ({ start: { ...part, ...(partIndex > 0 && { partIndex }) } });
const finish = (finishReason: string, nativeFinishReason: string) => ({
  choiceFinish: {
    finishReason: `FINISH_REASON_${finishReason}`,
    ...(nativeFinishReason !== "" && { nativeFinishReason }),
  },
});

/** The calls of a stream that ends well, put together: name and arguments, by index. */
function callsOf(...events: unknown[]): unknown[] {
  const outcome = readStream(toSse(...events, chunk({}, "tool_calls")));
  expect(outcome.failure).toBeUndefined();
  const answer = folded(outcome.chunks) as {
    choices: { message: { parts: { toolCall: { name: string; argumentsJson: string } }[] } }[];
  };
  return answer.choices[0]!.message.parts.map(({ toolCall: { name, argumentsJson } }) => [name, argumentsJson]);
}

describe.each([
  ["whole", 1 << 20],
  ["in 7-byte pieces", 7],
  ["in 1-byte pieces", 1],
])("a stream that comes %s", (_, size) => {
  it("is read as fixture 40 expects", () => {
    const bytes = readFixture("40-openai-compat-quirks-stream").bytes("upstream-response.sse");
    const { chunks, failure } = readStream(bytes, everyBytes(size, bytes.length));
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual([
      delta({ reasoning: "hm" }),
      delta({ text: "ok" }, 1),
      begin("call_9", "get_weather", 2),
      delta({ argumentsJson: '{"ci' }, 2),
      delta({ argumentsJson: 'ty":"Oslo"}' }, 2),
      finish("TOOL_CALLS", "tool_calls"),
      { usage: { inputTokens: 20, outputTokens: 9, totalTokens: 29 } },
    ]);
  });

  it("is read from its deltas, also where each event has all of the message so far", () => {
    const both = (piece: string, content: string, word: unknown = null) => ({
      choices: [{ index: 0, delta: { content: piece }, message: { role: "assistant", content }, finish_reason: word }],
    });
    const bytes = toSse(both("It ", "It "), both("is.", "It is.", "stop"));
    const { chunks, failure } = readStream(bytes, everyBytes(size, bytes.length));
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual([delta({ text: "It " }), delta({ text: "is." }), finish("STOP", "stop")]);
  });

  it("traps 19 and 21: gives its text and then the failure of fixture 41", () => {
    const bytes = readFixture("41-openai-compat-mid-error").bytes("upstream-response.sse");
    const { chunks, failure } = readStream(bytes, everyBytes(size, bytes.length));
    expect(plain(chunks)).toEqual([delta({ text: "Hel" })]);
    expect(failure).toMatchObject({
      code: "upstream_rate_limited",
      message: "The upstream provider failed while generating the response.",
      upstreamStatus: 200,
    });
  });

  it("trap 1: keeps its characters whole", () => {
    const bytes = toSse(text("日本🗼é"), text("ä"), stop);
    expect(plain(readStream(bytes, everyBytes(size, bytes.length)).chunks)).toEqual([
      delta({ text: "日本🗼é" }),
      delta({ text: "ä" }),
      finish("STOP", "stop"),
    ]);
  });
});

describe("a stream's end", () => {
  const said = [delta({ text: "a" }), finish("STOP", "stop")];

  it.each([
    ["with the marker", "data: [DONE]\n\n"],
    ["with the marker and no blank", "data:[DONE]\n\n"],
    ["with blanks after the marker", "data: [DONE]  \n\n"],
    ["with something after the marker", 'data: [DONE]\n\ndata: {"choices":[{"index":0,"delta":{"content":"b"}}]}\n\n'],
    ["without a marker", ""],
    ["with a marker that lacks its blank line", "data: [DONE]"],
  ])("trap 10: is clean %s", (_, tail) => {
    const events = [text("a"), stop].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    const { chunks, failure } = readStream(Buffer.from(events + tail));
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual(said);
  });

  it("trap 9: may lack the last blank line", () => {
    const bytes = Buffer.from(`data: ${JSON.stringify(text("a"))}\n\ndata: ${JSON.stringify(stop)}`);
    expect(plain(readStream(bytes).chunks)).toEqual(said);
  });

  it.each([
    ["after nothing", ""],
    ["after text", `data: ${JSON.stringify(text("a"))}\n\n`],
    ["after text and the marker", `data: ${JSON.stringify(text("a"))}\n\ndata: [DONE]\n\n`],
    [
      "with only one of two choices ended",
      `data: ${JSON.stringify({
        choices: [
          { index: 0, delta: { content: "a" } },
          { index: 1, delta: { content: "b" }, finish_reason: "stop" },
        ],
      })}\n\n`,
    ],
  ])("trap 20: is a failure when it comes before a finish reason, %s", (_, body) => {
    const { failure } = readStream(Buffer.from(body));
    expect(failure).toMatchObject({
      code: "upstream_protocol",
      message: "The upstream provider closed the stream before it was complete.",
    });
  });

  it("trap 9: is a failure in the middle of an event, unless every choice has ended", () => {
    const half = `data: {"choi`;
    const begun = `data: ${JSON.stringify(text("a"))}\n\n`;
    expect(readStream(Buffer.from(begun + half)).failure?.message).toMatch(/closed the stream before/);
    const ended = `${begun}data: ${JSON.stringify(stop)}\n\n`;
    expect(plain(readStream(Buffer.from(ended + half)).chunks)).toEqual([delta({ text: "a" }), finish("STOP", "stop")]);
  });

  it("is not reached over an event that is not JSON", () => {
    const { failure } = readStream(Buffer.from(`data: <html>\n\ndata: ${JSON.stringify(stop)}\n\n`));
    expect(failure).toMatchObject({
      code: "upstream_protocol",
      message: "The upstream provider's answer could not be read.",
    });
  });

  it("is near when every choice has a reason", () => {
    const finishedAfter = (...objects: readonly unknown[]): boolean => {
      const reader = new AnswerStream();
      for (const each of objects) reader.read({ event: "", data: JSON.stringify(each) }, []);
      return reader.finished;
    };
    expect(finishedAfter()).toBe(false);
    expect(finishedAfter(chunk({ content: "a" }, ""))).toBe(false);
    expect(finishedAfter(text("a"), stop)).toBe(true);
    expect(finishedAfter(stop, { choices: [{ index: 1, delta: { content: "b" } }] })).toBe(false);
  });

  it("trap 10: is the marker, and what follows it is ignored", () => {
    const late = Buffer.from(`data: ${JSON.stringify(text("late"))}\n\ndata: {`);
    const { chunks, failure } = readStream(Buffer.concat([toSse(text("a"), stop), late]));
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual([delta({ text: "a" }), finish("STOP", "stop")]);
  });

  it("may come after reasoning alone", () => {
    const { chunks, failure } = readStream(toSse(chunk({ reasoning_content: "hm" }), stop));
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual([delta({ reasoning: "hm" }), finish("STOP", "stop")]);
  });

  it("is a failure when nothing was said and nothing explains it", () => {
    expect(readStream(toSse(chunk({ role: "assistant", content: "" }), stop)).failure).toMatchObject({
      code: "upstream_protocol",
      message: "The upstream model returned no usable output.",
      requestBound: true,
    });
  });

  it.each([
    ["length", "LENGTH"],
    ["content_filter", "CONTENT_FILTER"],
  ])("trap 78: may come after nothing for the reason %s", (word, reason) => {
    expect(plain(readStream(toSse(chunk({}, word))).chunks)).toEqual([finish(reason, word)]);
  });

  it.each<[string, string, unknown[]]>([
    ["stop", "STOP", [text("a"), chunk({}, "stop")]],
    ["eos_token", "STOP", [text("a"), chunk({}, "eos_token"), chunk({}, "")]],
    ["", "STOP", [text("a"), chunk({}, "")]],
    ["stop", "STOP", [chunk({ content: "a" }, ""), chunk({}, "stop")]],
    ["stop", "STOP", [chunk({ content: "a" }, "stop"), chunk({}, "length"), chunk({}, "")]],
    ["length", "LENGTH", [chunk({ content: "a" }, "whatever"), chunk({}, "length")]],
    ["tool_calls", "STOP", [text("a"), chunk({}, "tool_calls")]],
    ["stop", "TOOL_CALLS", [call(fn(0, "c", "f", "{}")), chunk({}, "stop")]],
    ["length", "LENGTH", [call(fn(0, "c", "f", '{"a')), chunk({}, "length")]],
    ["model_length", "LENGTH", [text("a"), chunk({}, "model_length")]],
  ])("trap 89: has one finish, by the first word that we know: %s is %s", (word, reason, events) => {
    const ends = plain(readStream(toSse(...events)).chunks).filter((one) => "choiceFinish" in (one as object));
    expect(ends).toEqual([finish(reason, word)]);
  });

  it("has the provider's own word beside ours", () => {
    const end = {
      choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop", native_finish_reason: "end_turn" }],
    };
    expect(plain(readStream(toSse(end)).chunks).at(-1)).toEqual(finish("STOP", "end_turn"));
  });

  it.each(["error", "abort", "insufficient_system_resource"])("is a failure for the reason %s", (word) => {
    const { chunks, failure } = readStream(toSse(text("a"), chunk({}, word)));
    expect(plain(chunks)).toEqual([delta({ text: "a" })]);
    expect(failure?.code).toBe("upstream_unavailable");
  });
});

describe("a stream's events", () => {
  it("traps 5, 71 and 88: mean nothing when they are comments, blanks, empty deltas or without choices", () => {
    const events = [
      ": ping",
      "data:",
      "retry: 10",
      "event: keepalive\ndata: {}",
      ...[
        { choices: [], prompt_filter_results: [{}] },
        chunk({ role: "assistant", content: null, reasoning: "", tool_calls: null }),
        chunk({ content: "", images: [], refusal: null }),
        { choices: null },
        { choices: [null, 7] },
        chunk(null),
        [],
        "text",
        null,
      ].map((event) => `data: ${JSON.stringify(event)}`),
    ];
    const reader = readStream(Buffer.from(`${events.join("\n\n")}\n\n${toSse(text("a"), stop).toString()}`));
    expect(reader.failure).toMatchObject({
      message: "The upstream provider closed the stream before it was complete.",
    });
    expect(plain(reader.chunks)).toEqual([delta({ text: "a" })]);
  });

  it("trap 86: say reasoning once, by whatever name it goes", () => {
    const { chunks } = readStream(
      toSse(
        chunk({ reasoning: "a", reasoning_content: "a", reasoning_details: [{ text: "a" }] }),
        chunk({ reasoning: "b" }),
        chunk({
          content: [
            { type: "thinking", thinking: [{ type: "text", text: "c" }] },
            { type: "text", text: "d" },
          ],
        }),
        chunk({ reasoning_details: [{ type: "reasoning.summary", summary: "e" }] }),
        stop,
      ),
    );
    expect(plain(chunks).slice(0, -1)).toEqual([
      delta({ reasoning: "a" }),
      delta({ reasoning: "b" }),
      delta({ reasoning: "c" }),
      delta({ text: "d" }, 1),
      delta({ reasoning: "e" }, 2),
    ]);
  });

  it("give pictures from a list of their own or from the content", () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" }, index: 0 };
    const { chunks } = readStream(toSse(chunk({ images: [image] }), chunk({ content: [image] }), stop));
    const picture = { image: { data: "iVBORw==", mediaType: "image/png" } };
    expect(plain(chunks).slice(0, -1)).toEqual([start(picture), start(picture, 1)]);
  });

  it("give speech and refusals", () => {
    const { chunks } = readStream(
      toSse(
        chunk({ audio: { id: "a1", data: "AAA=" } }),
        chunk({ audio: { expires_at: 9 } }),
        chunk({ refusal: "no" }),
        stop,
      ),
    );
    expect(plain(chunks).slice(0, -1)).toEqual([
      delta({ audio: { id: "a1", data: "AAA=" } }),
      delta({ audio: { expireTime: "1970-01-01T00:00:09Z" } }),
      delta({ refusal: "no" }, 1),
    ]);
  });

  it("interleave several choices, each with its own calls and finish, in their order", () => {
    const of = (index: number, content: string, finish_reason: string | null = null) => ({
      index,
      delta: { content },
      finish_reason,
    });
    const { chunks } = readStream(
      toSse(
        { choices: [of(1, "b")] },
        { choices: [of(0, "a"), of(1, "c", "length")] },
        { choices: [of(0, "", "stop")] },
      ),
    );
    expect(plain(chunks)).toEqual([
      delta({ choiceIndex: 1, text: "b" }),
      delta({ text: "a" }),
      delta({ choiceIndex: 1, text: "c" }),
      finish("STOP", "stop"),
      { choiceFinish: { ...finish("LENGTH", "length").choiceFinish, choiceIndex: 1 } },
    ]);
  });

  it("may say more after the finish reason, and the finish still comes last", () => {
    const { chunks } = readStream(toSse(chunk({ content: "a" }, "stop"), text("b")));
    expect(plain(chunks)).toEqual([delta({ text: "a" }), delta({ text: "b" }), finish("STOP", "stop")]);
  });

  it("keep log probabilities with the text they belong to", () => {
    const logprobs = (token: string) => ({
      content: [{ token, logprob: -1, bytes: [97], top_logprobs: [{ token, logprob: -1, bytes: null }] }],
      refusal: null,
    });
    const piece = (content: string, token: string) => ({
      choices: [{ index: 0, delta: { content }, logprobs: logprobs(token) }],
    });
    const { chunks } = readStream(toSse(piece("", "x"), piece("a", "a"), piece("b", "b"), text("c"), stop));
    const token = (name: string) => ({ token: name, logprob: -1, bytes: "YQ==", top: [{ token: name, logprob: -1 }] });
    expect(plain(chunks).slice(0, -1)).toEqual([
      delta({ text: "a", logprobs: [token("x"), token("a")] }),
      delta({ text: "b", logprobs: [token("b")] }),
      delta({ text: "c" }),
    ]);
  });

  it("keep log probabilities of refusals apart, and none of other content", () => {
    const piece = (given: object, content: string | null, refusal: string | null = null) => {
      const tokens = (token: string | null) => (token === null ? null : [{ token, logprob: -1 }]);
      return {
        choices: [{ index: 0, delta: given, logprobs: { content: tokens(content), refusal: tokens(refusal) } }],
      };
    };
    const { chunks } = readStream(
      toSse(
        piece({ reasoning: "hm" }, "hm"),
        piece({ content: "a", refusal: "b" }, "a", "b"),
        piece({ tool_calls: [fn(0, "c", "f", "{}")] }, "{}"),
        text("d"),
        stop,
      ),
    );
    const token = (name: string) => ({ token: name, logprob: -1 });
    expect(plain(chunks).slice(0, -1)).toEqual([
      delta({ reasoning: "hm" }),
      delta({ text: "a", logprobs: [token("a")] }, 1),
      delta({ refusal: "b", logprobs: [token("b")] }, 2),
      begin("c", "f", 3),
      delta({ argumentsJson: "{}" }, 3),
      delta({ text: "d" }, 4),
    ]);
  });

  it("trap 81: count usage once, by the last word on it, wherever it stands", () => {
    const usage = (completion_tokens: number) => ({
      prompt_tokens: 1,
      completion_tokens,
      total_tokens: completion_tokens + 1,
    });
    const counted = (...events: unknown[]) =>
      plain(readStream(toSse(...events)).chunks).filter((one) => "usage" in (one as object));
    const expected = [{ usage: { inputTokens: 1, outputTokens: 5, totalTokens: 6 } }];
    expect(
      counted({ ...text("a"), usage: usage(2) }, { ...stop, usage: usage(5) }, { choices: [], usage: null }),
    ).toEqual(expected);
    expect(counted(text("a"), stop, { choices: [], usage: usage(5) })).toEqual(expected);
    expect(
      counted({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop", usage: usage(5) }] }),
    ).toEqual(expected);
    expect(counted(text("a"), stop)).toEqual([]);
  });

  it("counts the answers of all choices where each has a usage of its own", () => {
    const choice = (index: number, tokens: number) => ({
      index,
      delta: { content: "a" },
      finish_reason: "stop",
      usage: {
        prompt_tokens: 7,
        completion_tokens: tokens,
        completion_tokens_details: { reasoning_tokens: tokens - 1 },
        cost: 0.001,
      },
    });
    const events = [{ choices: [choice(0, 50)] }, { choices: [choice(1, 20)] }, { choices: [choice(2, 30)] }];
    const usageOf = (...all: object[]) =>
      readStream(toSse(...all)).chunks.flatMap(({ event }) => (event.case === "usage" ? event.value : []));
    expect(usageOf(...events)).toMatchObject([
      { inputTokens: 7, outputTokens: 100, totalTokens: 107, reasoningOutputTokens: 97, statedMicroUsd: 3_000 },
    ]);
    // That of the whole answer has precedence.
    const whole = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 90 } };
    expect(usageOf(...events, whole)).toMatchObject([{ inputTokens: 7, outputTokens: 90, totalTokens: 97 }]);
  });

  it("may be one whole completion", () => {
    const { chunks } = readStream(
      toSse({ choices: [{ index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" }] }),
    );
    expect(plain(chunks)).toEqual([delta({ text: "a" }), finish("STOP", "stop")]);
  });
});

describe("a stream's tool calls", () => {
  it("trap 70: say ID and name once, even if every piece repeats them", () => {
    const { chunks } = readStream(
      toSse(call(fn(0, "c", "f", "{")), call(fn(0, "c", "f", "}")), call(fn(0, "c", "f", "")), chunk({}, "tool_calls")),
    );
    expect(plain(chunks)).toEqual([
      begin("c", "f"),
      delta({ argumentsJson: "{" }),
      delta({ argumentsJson: "}" }),
      finish("TOOL_CALLS", "tool_calls"),
    ]);
  });

  it("trap 77: are passed on as they are when the token limit cuts them", () => {
    const { chunks, failure } = readStream(toSse(call(fn(0, "c", "f", '{"ci')), chunk({}, "length")));
    expect(failure).toBeUndefined();
    expect(plain(chunks)).toEqual([begin("c", "f"), delta({ argumentsJson: '{"ci' }), finish("LENGTH", "length")]);
  });

  it("trap 72: have an empty object when there are no arguments", () => {
    expect(callsOf(call(fn(0, "a", "f", "")), call(fn(1, "b", "g", undefined)), call(fn(2, "c", "h", null)))).toEqual([
      ["f", "{}"],
      ["g", "{}"],
      ["h", "{}"],
    ]);
  });

  it.each<[string, unknown[]]>([
    [
      "by index",
      [
        call(fn(0, "a", "f", "1")),
        call(fn(1, "b", "g", "3")),
        call(fn(0, undefined, undefined, "2")),
        call(fn(1, undefined, undefined, "4")),
      ],
    ],
    ["by indexes that do not begin at 0", [call(fn(3, "a", "f", "12")), call(fn(7, "b", "g", "34"))]],
    [
      "by ID",
      [
        call(fn(undefined, "a", "f", "1")),
        call(fn(undefined, "b", "g", "3")),
        call(fn(undefined, "a", undefined, "2")),
        call(fn(undefined, "b", undefined, "4")),
      ],
    ],
    [
      "by order",
      [
        call(fn(undefined, "a", "f", "1")),
        call(fn(undefined, undefined, undefined, "2")),
        call(fn(undefined, "b", "g", "34")),
      ],
    ],
    [
      "by names alone",
      [
        call(fn(undefined, undefined, "f", "1")),
        call(fn(undefined, undefined, undefined, "2")),
        call(fn(undefined, undefined, "g", "34")),
      ],
    ],
    [
      "by ID under one index",
      [call(fn(0, "a", "f", "12")), call(fn(0, "b", "g", "3")), call(fn(0, undefined, undefined, "4"))],
    ],
    ["by index under one ID", [call(fn(0, "a", "f", "12")), call(fn(1, "a", "g", "34"))]],
    [
      "with a new ID in every piece",
      [call(fn(0, "a", "f", "1")), call(fn(0, "x", undefined, "2")), call(fn(1, "b", "g", "34"))],
    ],
    [
      "with the name after the arguments",
      [call(fn(0, "a", "", "1")), call(fn(0, "", "f", "2")), call(fn(1, "b", "g", "34"))],
    ],
  ])("trap 73: are distinguished %s", (_, events) => {
    expect(callsOf(...events)).toEqual([
      ["f", "12"],
      ["g", "34"],
    ]);
  });

  it("trap 74: may be two in one event", () => {
    const { chunks } = readStream(toSse(call(fn(0, "a", "f", "{}"), fn(1, "b", "g", "{}")), chunk({}, "tool_calls")));
    expect(plain(chunks).slice(0, 4)).toEqual([
      begin("a", "f"),
      delta({ argumentsJson: "{}" }),
      begin("b", "g", 1),
      delta({ argumentsJson: "{}" }, 1),
    ]);
  });

  it("trap 87: may have an object for arguments, and keep text that holds JSON text", () => {
    expect(callsOf(call(fn(0, "a", "f", { x: 1 })), call(fn(1, "b", "g", '"{}"')))).toEqual([
      ["f", '{"x":1}'],
      ["g", '"{}"'],
    ]);
  });

  it("get an ID when the upstream gives none, short enough for every client", () => {
    const { chunks } = readStream(
      toSse(call(fn(0, undefined, "f", "{}"), fn(1, undefined, "g", "{}")), chunk({}, "stop")),
    );
    const ids = plain(chunks).flatMap(
      (one) => (one as { start?: { toolCall: { id: string } } }).start?.toolCall.id ?? [],
    );
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^call_[A-Za-z0-9]{20,35}$/);
  });

  it("fail the answer when one is never named, and are none when they say nothing", () => {
    expect(readStream(toSse(text("a"), call(fn(0, "a", "", "{}")), stop)).failure).toMatchObject({
      code: "upstream_protocol",
      message: "The upstream model produced an invalid tool call.",
      requestBound: true,
    });
    const { chunks } = readStream(toSse(text("a"), call({ index: 0, type: "function", function: {} }), stop));
    expect(plain(chunks)).toEqual([delta({ text: "a" }), finish("STOP", "stop")]);
  });

  it("trap 46: keep the digits of large numbers in arguments that are an object", () => {
    const id = "9223372036854775807";
    const body = `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":{"id":${id}}}}]}}]}`;
    const { chunks } = readStream(Buffer.concat([Buffer.from(`data: ${body}\n\n`), toSse(stop)]));
    expect(JSON.stringify(plain(chunks))).toContain(String.raw`{\"id\":${id}}`);
  });

  it("may be custom, with an input that may be empty", () => {
    const custom = { index: 0, id: "a", type: "custom", custom: { name: "sql", input: "" } };
    const { chunks } = readStream(toSse(call(custom), stop));
    expect(plain(chunks).slice(0, -1)).toEqual([begin("a", "sql", 0, { customInput: "" })]);
    const more = { index: 0, type: "custom", custom: { input: "select 1" } };
    expect(plain(readStream(toSse(call(custom), call(more), stop)).chunks).slice(1, -1)).toEqual([
      delta({ customInput: "select 1" }),
    ]);
  });

  it("may be of the form before tool calls, alone or beside the new one", () => {
    const first = { name: "f", arguments: "{" };
    const end = { arguments: "}" };
    expect(callsOf(chunk({ function_call: first }), chunk({ function_call: end }))).toEqual([["f", "{}"]]);
    const both = { tool_calls: [fn(0, "a", "f", "{}")], function_call: { name: "f", arguments: "{}" } };
    expect(callsOf(chunk(both))).toEqual([["f", "{}"]]);
  });

  it("end the text before them, with its sources and its state, which are not repeated", () => {
    const annotations = [
      { type: "url_citation", url_citation: { url: "https://e.org", start_index: 1, end_index: 2 } },
    ];
    const extra_content = { google: { thought_signature: "sig" } };
    const { chunks } = readStream(
      toSse(
        chunk({ content: "ab", annotations, extra_content }),
        chunk({ tool_calls: [fn(0, "a", "f", "{}")], extra_content }),
        chunk({ content: "c", extra_content }),
        chunk({
          annotations: [{ ...annotations[0], url_citation: { url: "https://f.org", start_index: 2, end_index: 3 } }],
        }),
        stop,
      ),
    );
    expect(plain(chunks).slice(0, -1)).toEqual([
      delta({ text: "ab" }),
      delta({ citation: { url: "https://e.org", textRange: { start: 1, end: 2 } } }),
      { end: { signature: "sig" } },
      begin("a", "f", 1),
      delta({ argumentsJson: "{}" }, 1),
      delta({ text: "c" }, 2),
      delta({ citation: { url: "https://f.org", textRange: { end: 1 } } }, 2),
    ]);
  });

  it("have sources in code points, counted from the beginning of their text", () => {
    const cite = (start_index: unknown, end_index: unknown) =>
      chunk({
        annotations: [{ type: "url_citation", url_citation: { url: "https://e.org", start_index, end_index } }],
      });
    const before = [text("🌊"), text("\ud83c"), text("\udf0a!"), call(fn(0, "a", "f", "{}"))];
    const { chunks } = readStream(
      toSse(
        ...before,
        text("潮🌊汐"),
        cite(4, 5),
        cite(2, 4),
        cite(1, 3),
        cite(3, undefined),
        cite(null, 4),
        cite(5, 5),
        stop,
      ),
    );
    const ranges = folded(chunks) as { choices: [{ message: { parts: { citations: { textRange?: object }[] }[] } }] };
    expect(ranges.choices[0].message.parts[2]!.citations.map(({ textRange }) => textRange)).toEqual([
      { start: 1, end: 2 },
      { end: 1 },
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("trap 102: carry the state that must come back, once", () => {
    const signed = { ...fn(0, "a", "f", "{}"), extra_content: { google: { thought_signature: "sig" } } };
    const { chunks } = readStream(toSse(call(signed), call(signed), stop));
    expect(plain(chunks).slice(0, 1)).toEqual([
      start({ toolCall: { id: "a", name: "f", argumentsJson: "" }, signature: "sig" }),
    ]);
    expect(JSON.stringify(plain(chunks)).match(/sig"/g)).toHaveLength(1);
  });
});

describe("an error in a stream", () => {
  it.each<[string, unknown, string, string]>([
    ["a number", { error: { code: 502, message: "x" } }, "upstream_unavailable", "generating"],
    ["a number as text", { error: { code: "429", message: "x" } }, "upstream_rate_limited", "generating"],
    ["a name", { error: { type: "overloaded_error", message: "x" } }, "upstream_unavailable", "generating"],
    ["no name", { error: { message: "x" } }, "upstream_unavailable", "generating"],
    ["mere text", { error: "failed" }, "upstream_unavailable", "generating"],
    [
      "an entry of choices",
      { choices: [{ index: 0, delta: {}, error: { code: 401 } }] },
      "upstream_refused_us",
      "generating",
    ],
    ["an object of its own kind", { object: "error", message: "x", code: 504 }, "upstream_timeout", "generating"],
    [
      "the request's fault",
      { error: { type: "invalid_request_error", message: "bad image" } },
      "upstream_rejected",
      "generating",
    ],
  ])("traps 18 and 19: is named by %s", (_, event, code, words) => {
    const { chunks, failure } = readStream(toSse(text("a"), event, text("b")));
    expect(plain(chunks)).toEqual([delta({ text: "a" })]);
    expect(failure?.code).toBe(code);
    expect(failure?.message).toContain(words);
  });

  it("may be an event of that name", () => {
    const { failure } = readStream(Buffer.from('event: error\ndata: {"message":"x","code":429}\n\n'));
    expect(failure?.code).toBe("upstream_rate_limited");
  });

  it("before any content is named as its status would be, in its own words", () => {
    const first = { error: { type: "invalid_request_error", message: "bad image" } };
    expect(readStream(toSse(first)).failure).toMatchObject({ code: "upstream_rejected", message: "bad image" });
    const broken = readStream(toSse(chunk({ role: "assistant", content: "" }), chunk({}, "error")));
    expect(broken.failure?.message).toBe("The upstream provider failed.");
  });

  it("comes before any content when only a signature or a citation came", () => {
    const signed = chunk({ extra_content: { google: { thought_signature: "sig" } } });
    const cited = chunk({ annotations: [{ type: "url_citation", url_citation: { url: "https://example.com" } }] });
    const { chunks, failure } = readStream(toSse(signed, cited, { error: { code: 502 } }));
    expect(chunks).toEqual([]);
    expect(failure?.message).toBe("The upstream provider failed.");
    expect(plain(readStream(toSse(signed, cited, text("a"), stop)).chunks)).toEqual([
      delta({ text: "a" }),
      delta({ citation: { url: "https://example.com" } }),
      { end: { signature: "sig" } },
      finish("STOP", "stop"),
    ]);
  });

  it("has the count beside it, and costs something after one that came before it", () => {
    const usage = { prompt_tokens: 7, completion_tokens: 3 };
    const failureAfter = (...events: unknown[]) => readStream(toSse(...events)).failure;
    const counted = { inputTokens: 7, outputTokens: 3 };
    expect(failureAfter({ error: { code: 502 }, usage })).toMatchObject({ refused: false, usage: counted });
    const empty = chunk({ role: "assistant", content: "" });
    // As of servers that count with every piece, here of hidden reasoning.
    expect(failureAfter({ ...empty, usage }, { error: { code: 502 } })).toMatchObject({
      refused: false,
      usage: undefined,
    });
    expect(failureAfter(empty, { ...chunk({}, "error"), usage })).toMatchObject({ refused: false, usage: counted });
    expect(failureAfter(empty, { error: { code: 502 } })).toMatchObject({ refused: true });
  });

  it("is not one when it is null", () => {
    expect(readStream(toSse({ ...text("a"), error: null }, stop)).failure).toBeUndefined();
  });
});

describe("any stream", () => {
  const word = fc.string({ unit: "grapheme", maxLength: 6 });
  const answer = fc.record({
    content: fc.array(word, { maxLength: 6 }),
    reasoning: fc.array(word, { maxLength: 3 }),
    calls: fc.array(fc.record({ name: fc.stringMatching(/^[a-z]{1,8}$/), pieces: fc.array(word, { maxLength: 4 }) }), {
      maxLength: 3,
    }),
    refusal: fc.option(word, { nil: undefined }),
    finish: fc.constantFrom("stop", "length", "content_filter", "tool_calls"),
    usage: fc.option(fc.record({ prompt_tokens: fc.nat(999), completion_tokens: fc.nat(999) }), { nil: undefined }),
  });
  type Random = typeof answer extends fc.Arbitrary<infer T> ? T : never;

  const toEvents = ({ content, reasoning, calls, refusal, finish: end, usage }: Random): unknown[] => [
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...content.map(text),
    chunk({ refusal }),
    ...calls.flatMap(({ name, pieces }, index) => [
      call(fn(index, `call_${index}`, name, "")),
      ...pieces.map((piece) => call(fn(index, undefined, undefined, piece))),
    ]),
    { ...chunk({}, end), usage },
  ];
  const toWhole = ({ content, reasoning, calls, refusal, finish: end, usage }: Random): unknown => ({
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: content.join(""),
          reasoning_content: reasoning.join(""),
          refusal,
          tool_calls: calls.map(({ name, pieces }, index) => fn(undefined, `call_${index}`, name, pieces.join(""))),
        },
        finish_reason: end,
      },
    ],
    usage,
  });

  it("gives the same chunks however its bytes are split", () => {
    fc.assert(
      fc.property(answer, fc.array(fc.nat(), { maxLength: 20 }), (random, places) => {
        const bytes = toSse(...toEvents(random));
        const cuts = places.map((place) => place % bytes.length).toSorted((a, b) => a - b);
        const [once, split] = [readStream(bytes), readStream(bytes, cuts)];
        expect(plain(split.chunks)).toEqual(plain(once.chunks));
        expect(split.failure).toEqual(once.failure);
      }),
      { numRuns: 200 },
    );
  });

  it("put together, is the whole answer", () => {
    fc.assert(
      fc.property(answer, (random) => {
        const { chunks, failure } = readStream(toSse(...toEvents(random)));
        const whole = readWhole(toWhole(random));
        expect(failure).toEqual(whole.failure);
        expect(failure === undefined ? folded(chunks) : undefined).toEqual(whole.answer);
      }),
      { numRuns: 300 },
    );
  });

  it("of any JSON ends in chunks or in a failure, never in another error", () => {
    const key = fc.constantFrom(
      "choices",
      "delta",
      "message",
      "content",
      "tool_calls",
      "function",
      "error",
      "usage",
      "index",
      "images",
      "type",
      "id",
    );
    const { json } = fc.letrec((tie) => ({
      json: fc.oneof(
        { depthSize: "small" },
        fc.jsonValue({ maxDepth: 1 }),
        fc.array(tie("json"), { maxLength: 3 }),
        fc.dictionary(key, tie("json"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(json, (event) => {
        const { failure } = readStream(toSse(event));
        expect(failure === undefined || failure instanceof Failure).toBe(true);
        const whole = readWhole(event);
        expect(whole.failure === undefined).toBe(whole.answer !== undefined);
      }),
      { numRuns: 500 },
    );
  });
});
