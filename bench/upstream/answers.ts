/**
 * The mark repeated in the answers' text: counting marks is a cheap check of an answer. Long enough not to occur by chance
 * in a binary message.
 */
export const MARK = "~brk";

/** Marks in a whole answer. */
export const MARKS_IN_WHOLE_ANSWER = 8;

/** A stream of a number of text events; at interval 0 as fast as it is read. */
export interface StreamShape {
  readonly chunks: number;
  readonly intervalMs: number;
  /** Delay of a paced stream's first text event. Default: 0. */
  readonly firstMs?: number;
  /** Text events of a paced stream that are written as one piece. Default: 1. */
  readonly together?: number;
}

/** An endless stream: a text event at once, then one per interval. */
export interface HeldShape {
  readonly everyMs: number;
}

/** A whole answer: text; text with tool calls; text with a picture. */
export type WholeAnswer = "whole" | "tools" | "picture";

/** All answers of the mock upstream. */
export type Answer = WholeAnswer | StreamShape | HeldShape;

/** Model name that selects this answer; a gateway passes it to the upstream unchanged. */
export function modelOf(answer: Answer): string {
  if (typeof answer === "string") return `bench-${answer}`;
  if ("everyMs" in answer) return `bench-held-${answer.everyMs}`;
  const { chunks, intervalMs, firstMs, together } = answer;
  const begin = firstMs === undefined ? "" : `-after-${firstMs}`;
  return `bench-stream-${chunks}-${intervalMs}${begin}${together === undefined ? "" : `-by-${together}`}`;
}

/** Inverse of `modelOf`; undefined for any other model. */
export function answerOf(model: string): Answer | undefined {
  const whole = (["whole", "tools", "picture"] as const).find((answer) => model === modelOf(answer));
  if (whole !== undefined) return whole;
  const held = /^bench-held-(\d+)$/.exec(model);
  if (held !== null) return { everyMs: Number(held[1]) };
  const match = /^bench-stream-(\d+)-(\d+)(?:-after-(\d+))?(?:-by-(\d+))?$/.exec(model);
  if (match === null) return undefined;
  const [, chunks, intervalMs, firstMs, together] = match;
  return {
    chunks: Number(chunks),
    intervalMs: Number(intervalMs),
    ...(firstMs !== undefined && { firstMs: Number(firstMs) }),
    ...(together !== undefined && { together: Number(together) }),
  };
}

const USAGE = {
  input_tokens: 119,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 48,
  service_tier: "standard",
};

const MESSAGE = { id: "msg_01BenchBenchBenchBenchBe", type: "message", role: "assistant", model: "bench-upstream-1" };

/** The text of a whole answer, with its marks. */
export const WHOLE_TEXT = `${MARK} A bridge of stone carries the road over the river. `.repeat(MARKS_IN_WHOLE_ANSWER);

/** A whole answer in Anthropic's dialect, headers and all. */
export const WHOLE_RESPONSE = response(
  "200 OK",
  JSON.stringify({
    ...MESSAGE,
    content: [{ type: "text", text: WHOLE_TEXT }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: USAGE,
  }),
);

/** Marks in `TOOLS_RESPONSE`: its arguments have one each. */
export const MARKS_WITH_TOOLS = MARKS_IN_WHOLE_ANSWER + 2;

/** A whole answer in Anthropic's dialect that calls two tools. */
export const TOOLS_RESPONSE = response(
  "200 OK",
  JSON.stringify({
    ...MESSAGE,
    content: [
      { type: "text", text: WHOLE_TEXT },
      { type: "tool_use", id: "toolu_01BenchBenchBenchBench1", name: "get_weather", input: { city: MARK, days: 3 } },
      { type: "tool_use", id: "toolu_01BenchBenchBenchBench2", name: "book", input: { offer: MARK, passengers: 2 } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: USAGE,
  }),
);

/** The picture in `pictureResponse`, as base64: 4 MB. */
export const PICTURE_CHARACTERS = 4_000_000;

/** Marks in `pictureResponse`: one before and one after the picture. */
export const MARKS_WITH_PICTURE = 2;

/** A whole answer in Gemini's dialect with a picture between two texts. Created on first use, because it is large. */
export function pictureResponse(): Buffer {
  const data = Buffer.alloc((PICTURE_CHARACTERS / 4) * 3);
  for (let at = 0; at < data.length; at += 1) data[at] = (at * 2_654_435_761) >>> 13;
  Buffer.from("89504e470d0a1a0a", "hex").copy(data);
  const parts = [
    { text: `${MARK} Here it is.` },
    { inlineData: { mimeType: "image/png", data: data.toString("base64") } },
    { text: `${MARK} It shows a bridge.` },
  ];
  return response(
    "200 OK",
    JSON.stringify({
      candidates: [{ content: { parts, role: "model" }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 119, candidatesTokenCount: 1338, totalTokenCount: 1457 },
      modelVersion: "bench-upstream-1",
      responseId: "BenchBenchBenchBenchB",
    }),
  );
}

/** The mock upstream's refusal of unknown requests, which reveals errors of a contestant. */
export const REFUSAL = response(
  "400 Bad Request",
  JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: "not a benchmark request" } }),
);

/** Start of a stream: headers, and the events before the first text. */
export const STREAM_HEAD = Buffer.concat([
  Buffer.from(
    `${head("200 OK", "text/event-stream; charset=utf-8")}cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n`,
  ),
  chunk(
    event("message_start", {
      message: { ...MESSAGE, content: [], stop_reason: null, stop_sequence: null, usage: USAGE },
    }) +
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
      event("ping", {}),
  ),
]);

const TEXT_EVENT = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: ` wo${MARK}` } });

/** Text events as one chunk of HTTP's chunked coding. */
export function streamTexts(count: number): Buffer {
  return chunk(TEXT_EVENT.repeat(count));
}

/** One text event. */
export const STREAM_TEXT = streamTexts(1);

/** End of a stream. */
export const STREAM_TAIL = Buffer.concat([
  chunk(
    event("content_block_stop", { index: 0 }) +
      event("message_delta", {
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 48 },
      }) +
      event("message_stop", {}),
  ),
  Buffer.from("0\r\n\r\n"),
]);

function head(status: string, contentType: string): string {
  return `HTTP/1.1 ${status}\r\ndate: Thu, 20 Nov 2025 17:00:00 GMT\r\ncontent-type: ${contentType}\r\nrequest-id: req_011BenchBenchBenchBenchB\r\n`;
}

function response(status: string, body: string): Buffer {
  return Buffer.from(`${head(status, "application/json")}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
}
