import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { MAX_RESPONSE_BYTES } from "../../../src/providers/transport/http.ts";
import { EventJson, type SseEvent, SseParser } from "../../../src/providers/wire/sse.ts";
import { anyCharacter } from "../../support/any-character.ts";

/** Parses `bytes`, cut before each of `cuts`. */
function parse(bytes: Uint8Array, cuts: readonly number[] = []): SseEvent[] {
  const parser = new SseParser();
  const bounds = [0, ...cuts, bytes.length];
  const events = bounds.slice(1).flatMap((end, index) => parser.push(bytes.subarray(bounds[index], end)));
  return [...events, ...parser.end()];
}

const parseText = (text: string): SseEvent[] => parse(Buffer.from(text));
const data = (...values: string[]): SseEvent[] => values.map((value) => ({ event: "", data: value }));

/**
 * The standard's algorithm, word for word, over the whole stream at once; but for the end, where an event that lacks its
 * blank line counts, as it does for every client of these streams.
 */
function parseByTheStandard(bytes: Uint8Array): SseEvent[] {
  const events: SseEvent[] = [];
  let [type, buffer] = ["", ""];
  const dispatch = (): void => {
    if (buffer !== "") events.push({ event: type, data: buffer.slice(0, -1) });
    [type, buffer] = ["", ""];
  };
  for (const line of new TextDecoder().decode(bytes).split(/\r\n|\r|\n/)) {
    if (line === "") dispatch();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") buffer += `${value}\n`;
    else if (field === "event") type = value;
  }
  dispatch();
  return events;
}

describe("an event stream", () => {
  it.each([
    ["ends its lines with LF", "data: a\n\ndata: b\n\n"],
    ["trap 3: ends its lines with CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["ends its lines with CR", "data: a\r\rdata: b\r\r"],
    ["ends its lines with all three", "data: a\r\n\ndata: b\r\r\n"],
    ["has no blank after the colon", "data:a\n\ndata:b\n\n"],
    ["trap 5: begins with a byte order mark", "\uFEFFdata: a\n\ndata: b\n\n"],
    ["trap 5: has comments", ": hello\n\ndata: a\n:\n\n: ping\n\ndata: b\n\n"],
    [
      "trap 5: has fields that mean nothing here",
      "id: 1\nretry: 10\ndata: a\nfoo: x\ndatabase: y\n data: z\n\ndata: b\nid\n\n",
    ],
    ["has more blank lines than it needs", "\n\n\ndata: a\n\n\n\ndata: b\n\n\n"],
    ["trap 9: ends without the last blank line", "data: a\n\ndata: b\n"],
    ["trap 9: ends in the middle of a line", "data: a\n\ndata: b"],
  ])("is understood when it %s", (_, text) => {
    expect(parseText(text)).toEqual(data("a", "b"));
  });

  it("trap 4: joins several lines of data by a line feed", () => {
    expect(parseText("data: a\ndata:\ndata: b\n\n")).toEqual(data("a\n\nb"));
  });

  it("keeps all blanks but the first", () => {
    expect(parseText("data:  a \n\n")).toEqual(data(" a "));
  });

  it("has data that is empty, but no events without data", () => {
    expect(parseText("data:\n\ndata\n\nevent: x\n\n\n")).toEqual(data("", ""));
  });

  it("names an event, and forgets the name with the event", () => {
    expect(
      parseText("event: a\ndata: 1\n\ndata: 2\n\nevent:b\ndata: 3\nevent: c\n\nevent: d\nevent\ndata: 4\n\n"),
    ).toEqual([
      { event: "a", data: "1" },
      { event: "", data: "2" },
      { event: "c", data: "3" },
      { event: "", data: "4" },
    ]);
  });

  it("has a byte order mark only at its beginning", () => {
    expect(parseText("data: \uFEFFa\n\n\uFEFFdata: b\n\n")).toEqual(data("\uFEFFa"));
    const twice = Buffer.from("\uFEFF\uFEFFdata: a\n\ndata: b\n\n");
    for (const cut of twice.keys()) expect(parse(twice, [cut])).toEqual(data("b"));
  });

  it.each([1, 2, 3, 5])("trap 1: keeps characters whole in pieces of %i bytes", (size) => {
    const bytes = Buffer.from("data: é日🗼\n\ndata: 👩‍🚀\n\n");
    const cuts = Array.from({ length: Math.floor((bytes.length - 1) / size) }, (_, index) => (index + 1) * size);
    expect(parse(bytes, cuts)).toEqual(data("é日🗼", "👩‍🚀"));
  });

  it("trap 2: gives an event as soon as its blank line is in, without waiting for what follows a CR", () => {
    const parser = new SseParser();
    expect(parser.push(Buffer.from("data: a\r\n\r"))).toEqual(data("a"));
    expect(parser.push(Buffer.from("\ndata: b\r"))).toEqual([]);
    expect(parser.push(Buffer.from("\r"))).toEqual(data("b"));
    expect(parser.end()).toEqual([]);
  });

  it("replaces bytes that are not UTF-8", () => {
    expect(parse(Uint8Array.from([...Buffer.from("data: a"), 0xff, 0x0a, 0x0a]))).toEqual(data("a\uFFFD"));
    expect(parse(Uint8Array.from([...Buffer.from("data: a"), 0xe2, 0x82]))).toEqual(data("a\uFFFD"));
  });
});

describe("any event stream", () => {
  const piece = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("data: ", "data:", "data", "event: ", "event", "id: 1", ":", "\uFEFF") },
    { weight: 4, arbitrary: fc.constantFrom("data: a\n", "data\n", "event: a\n", "event\n", ": a\n") },
    { weight: 4, arbitrary: fc.constantFrom("\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\r\r") },
    { weight: 2, arbitrary: fc.string({ unit: anyCharacter, maxLength: 5 }) },
  );
  const stream = fc.oneof(
    fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.from(pieces.join(""))),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.concat([Buffer.from("data: "), bytes, Buffer.from("\n\n")])),
  );

  it("is parsed as the standard says, however its bytes are split", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (bytes, places) => {
        const cuts = places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b);
        expect(parse(bytes, cuts)).toEqual(parseByTheStandard(bytes));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("a long line", () => {
  it("is read as a short one, wherever its bytes are split", () => {
    const line = `data: ${"日本 é ".repeat(20_000)}`;
    const text = `event: a\ndata: b\n${line}\r\n\r\ndata: c\r\r${line}\ndata: d\n\n${line}`;
    const bytes = Buffer.concat([Buffer.from(text), Buffer.from([0xe2, 0x82])]);
    const expected = parseByTheStandard(bytes);
    for (const size of [1_000, 4_001, 65_536, 100_003]) {
      const cuts = Array.from({ length: Math.floor((bytes.length - 1) / size) }, (_, index) => (index + 1) * size);
      expect(parse(bytes, cuts), `${size} bytes`).toEqual(expected);
    }
  });

  it("counts as unfinished until its event is whole", () => {
    const parser = new SseParser();
    for (let sent = 0; sent < 10; sent++) parser.push(PIECE);
    expect(parser.unfinishedBytes).toBe(10 * PIECE.length);
    parser.push(Buffer.from("\n\ndata: b"));
    expect(parser.unfinishedBytes).toBe("data: b".length);
  });

  const PIECE = Buffer.alloc(16 * 1024, "a");

  /** Parses one line of `bytes` in pieces of 16 KiB, and returns the processor time it took. */
  function cpuMsOfLine(bytes: number): number {
    const parser = new SseParser();
    const before = process.cpuUsage();
    parser.push(Buffer.from("data: "));
    for (let sent = 0; sent < bytes; sent += PIECE.length) parser.push(PIECE);
    const [event] = parser.push(Buffer.from("\n\n"));
    const { user, system } = process.cpuUsage(before);
    expect(event!.data).toHaveLength(bytes);
    return (user + system) / 1000;
  }

  it("trap 7: costs in proportion to its length", () => {
    const MB = 1024 * 1024;
    const bestMs = Math.min(...[1, 2, 3].map(() => cpuMsOfLine(20 * MB)));
    // Some 2 ms a megabyte. Joining the pieces at each arrival would copy 13 GB: more than 50.
    expect(bestMs / 20).toBeLessThan(20);
  });

  it.each([
    ["one line", Buffer.alloc(1024 * 1024, "a")],
    ["many lines", Buffer.from(`data: ${"a".repeat(1024 * 1024 - 7)}\n`)],
  ])("is refused when its event is longer than an answer may be, in %s", (_, piece) => {
    const parser = new SseParser();
    parser.push(Buffer.from("data: "));
    const pushAll = (): void => {
      for (let sent = 0; sent <= MAX_RESPONSE_BYTES; sent += piece.length) parser.push(piece);
    };
    expect(pushAll).toThrow(Failure);
    expect(() => parser.push(piece)).toThrow(expect.objectContaining({ code: "upstream_protocol" }));
  });

  it("may come in pieces and be almost as long as an answer may be", () => {
    const parser = new SseParser();
    parser.push(Buffer.from("data: "));
    for (let count = 0; count < 40; count++) parser.push(Buffer.alloc(1024 * 1024, "a"));
    expect(parser.push(Buffer.from("\n\n"))).toHaveLength(1);
  });

  it("does not count what came in events before it", () => {
    const parser = new SseParser();
    const event = Buffer.from(`data: ${"a".repeat(1024 * 1024)}\n\n`);
    for (let count = 0; count < 70; count++) expect(parser.push(event)).toHaveLength(1);
  });
});

it("an event of millions of short lines is refused: each of them takes memory", () => {
  const parser = new SseParser();
  const lines = Buffer.from("data:x\n".repeat(100_000));
  expect(() => {
    for (let sent = 0; sent < MAX_RESPONSE_BYTES / 2; sent += lines.length) parser.push(lines);
  }).toThrow(Failure);
});

describe("the JSON of events", () => {
  it("is not looked for in empty data, thousands of which come in one read", () => {
    const parsing = vi.spyOn(JSON, "parse");
    const json = new EventJson();
    expect(["", " ", "\t\n"].map((text) => json.read(text))).toEqual([undefined, undefined, undefined]);
    expect(parsing).not.toHaveBeenCalled();
    parsing.mockRestore();
    expect(json.read(' {"a":1}')).toEqual({ a: 1 });
  });
});
