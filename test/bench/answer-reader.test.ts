import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerReader, type ReadAnswer } from "../../bench/load/answer-reader.ts";
import {
  MARK,
  MARKS_IN_WHOLE_ANSWER,
  REFUSAL,
  STREAM_HEAD,
  STREAM_TAIL,
  STREAM_TEXT,
  WHOLE_RESPONSE,
} from "../../bench/upstream/answers.ts";

const STREAM = Buffer.concat([STREAM_HEAD, STREAM_TEXT, STREAM_TEXT, STREAM_TEXT, STREAM_TAIL]);

/** Result of reading these pieces. */
function readAll(pieces: readonly Buffer[]): readonly ReadAnswer[] {
  const reader = new AnswerReader();
  return pieces.flatMap((piece) => reader.push(piece) ?? []);
}

function cut(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const ends = [...places.map((place) => place % bytes.length).toSorted((a, b) => a - b), bytes.length];
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end)).filter((piece) => piece.length > 0);
}

describe("reading answers under load", () => {
  it.each([
    ["a whole answer", WHOLE_RESPONSE, { status: 200, marks: MARKS_IN_WHOLE_ANSWER }],
    ["a stream", STREAM, { status: 200, marks: 3 }],
    ["a refusal", REFUSAL, { status: 400, marks: 0 }],
  ])("%s is the same however it is cut", (_, bytes, expected) => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), (places) => {
        expect(readAll(cut(bytes, places))).toMatchObject([expected]);
      }),
    );
  });

  it("reads one answer after the other on a connection", () => {
    const answers = readAll([WHOLE_RESPONSE, STREAM, WHOLE_RESPONSE]);
    expect(answers.map(({ marks }) => marks)).toEqual([MARKS_IN_WHOLE_ANSWER, 3, MARKS_IN_WHOLE_ANSWER]);
  });

  it("keeps the last bytes of a stream without the framing around them", () => {
    const [answer] = readAll(cut(STREAM, [STREAM.length - 3, STREAM.length - 9]));
    expect(answer?.tail.trimEnd()).toMatch(/data: \{"type":"message_stop"\}$/);
  });

  it("keeps the last bytes of a stream whose last chunks end in the middle of them", () => {
    const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    const chunks = ['data: {"t', 'ype":"message_stop"', "}\n\n"];
    const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("");
    const [answer] = readAll([Buffer.from(`${head}${body}0\r\n\r\n`)]);
    expect(answer?.tail).toMatch(/data: \{"type":"message_stop"\}\n\n$/);
  });

  it("finds the marks of a stream whose chunks end anywhere", () => {
    const events = Buffer.from(`data: "a${MARK} b"\n\ndata: "~${MARK}"\n\ndata: "${MARK}${MARK}"\n\n`);
    const head = Buffer.from("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    const chunk = (bytes: Buffer): Buffer =>
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), fc.array(fc.nat(), { maxLength: 40 }), (chunks, reads) => {
        const bytes = Buffer.concat([head, ...cut(events, chunks).map(chunk), Buffer.from("0\r\n\r\n")]);
        expect(readAll(cut(bytes, reads))).toMatchObject([{ marks: 4 }]);
      }),
    );
  });

  it("rejects a stream that breaks off", () => {
    expect(readAll([STREAM.subarray(0, STREAM.length - 1)])).toEqual([]);
  });

  it.each([
    ["a body that is longer than it says", `HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n${MARK}`, "more bytes than"],
    ["a body without an end", "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc", "no framing"],
    ["what is not HTTP", "hello\r\n\r\n", "no status line"],
  ])("refuses %s", (_, text, reason) => {
    expect(() => readAll([Buffer.from(text)])).toThrow(reason);
  });
});
