import { request } from "node:http";
import { Duplex } from "node:stream";
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ResponseError } from "../../../src/providers/transport/response-error.ts";
import { ResponseParser } from "../../../src/providers/transport/response-parser.ts";

/** Result of parsing some bytes. */
interface Heard {
  status?: number;
  headers?: object;
  body: string;
  /** "whole": the answer is complete; "more": bytes of it are missing; "broken": it is none. */
  end: "whole" | "more" | "broken";
  /** Whether something came after its end. */
  hasMore?: boolean;
}

/** Reads an answer in these pieces, each of which is written over once it was read. */
function read(pieces: readonly string[], { closes = false } = {}): Heard {
  const heard: Heard = { body: "", end: "more" };
  const parser = new ResponseParser({
    onHead: (status, headers) => Object.assign(heard, { status, headers }),
    onData: (bytes) => (heard.body += bytes.toString("latin1")),
  });
  try {
    for (const piece of pieces) {
      const bytes = Buffer.from(piece, "latin1");
      const isAll = parser.read(bytes);
      bytes.fill("!");
      if (parser.isOver) return { ...heard, end: "whole", hasMore: !isAll };
    }
    return closes && parser.end() ? { ...heard, end: "whole" } : heard;
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    return { ...heard, end: "broken" };
  }
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;

describe("an answer", () => {
  it.each<[string, string, Partial<Heard>]>([
    ["with a length", `${OK}Content-Length: 3\r\n\r\nabc`, { body: "abc", hasMore: false }],
    ["with a length of nothing", `${OK}content-length: 0\r\n\r\n`, { body: "" }],
    ["in chunks", `${CHUNKED}3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n`, { body: "abc0123456789" }],
    ["in chunks with extensions and trailers", `${CHUNKED}3;a=b\r\nabc\r\n0;x\r\nx-t: 1\r\n\r\n`, { body: "abc" }],
    ["that can have no body", "HTTP/1.1 204 No Content\r\n\r\n", { status: 204 }],
    ["that can have none, whatever it says", "HTTP/1.1 304 x\r\ncontent-length: 9\r\n\r\n", { status: 304, body: "" }],
    ["without a reason", "HTTP/1.1 200\r\ncontent-length: 1\r\n\r\na", { status: 200, body: "a" }],
    ["after sixteen that only inform", `${"HTTP/1.1 103 x\r\n\r\n".repeat(16)}${OK}content-length: 0\r\n\r\n`, {}],
    [
      "after others that only inform",
      `HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 x\r\na: b\r\n\r\n${OK}content-length: 0\r\n\r\n`,
      {},
    ],
    ["followed by another", `${OK}content-length: 1\r\n\r\nabHTTP`, { body: "a", hasMore: true }],
    ["followed by another after its chunks", `${CHUNKED}0\r\n\r\nHTTP`, { body: "", hasMore: true }],
    ["that fills one read", `${CHUNKED}10000\r\n${"a".repeat(65_536)}\r\n0\r\n\r\n`, { body: "a".repeat(65_536) }],
  ])("%s is whole", (_, text, expected) => {
    expect(read([text])).toMatchObject({ status: 200, end: "whole", ...expected });
  });

  it("ends with its connection when it says nothing else about its length, and only then", () => {
    expect(read([`${OK}\r\nab`, "c"])).toMatchObject({ body: "abc", end: "more" });
    expect(read([`${OK}\r\nab`, "c"], { closes: true })).toMatchObject({ body: "abc", end: "whole" });
    for (const cut of [OK, `${OK}content-length: 3\r\n\r\nab`, `${CHUNKED}3\r\nabc\r\n`, `${CHUNKED}0\r\n`])
      expect(read([cut], { closes: true })).toMatchObject({ end: "more" });
  });

  it("has its headers by their names in lower case, without the space around them", () => {
    const { headers } = read([
      `${OK}X-A: \t one two\t \r\nSet-Cookie: a\r\nset-cookie: b\r\nSET-COOKIE:\r\nx:é\r\n\r\n`,
    ]);
    expect(headers).toEqual({ "x-a": "one two", "set-cookie": ["a", "b", ""], x: "é" });
  });

  it("may have headers that are called like what every object has", () => {
    const { headers } = read([`${OK}constructor: a\r\ntoString: b\r\n__proto__: c\r\ncontent-length: 0\r\n\r\n`]);
    expect(headers).toMatchObject({ constructor: "a", tostring: "b" });
  });

  it.each([
    ["no HTTP", "hello"],
    ["another version", "HTTP/2.0 200 OK\r\n\r\n"],
    ["another version's number", "HTTP/1.2 200 OK\r\n\r\n"],
    ["a status that is none", "HTTP/1.1 099 x\r\n\r\n"],
    ["a status that is too long", "HTTP/1.1 2000 x\r\n\r\n"],
    ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"],
    [
      "an informational one that has a length",
      `HTTP/1.1 100 x\r\ncontent-length: 0\r\n\r\n${OK}content-length: 0\r\n\r\n`,
    ],
    ["an informational one in chunks", `HTTP/1.1 103 x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["endless informational ones", "HTTP/1.1 103 x\r\n\r\n".repeat(17)],
    ["a header without a colon", `${OK}a\r\n\r\n`],
    ["a header with a space before the colon", `${OK}content-length : 1\r\n\r\na`],
    ["a header on two lines", `${OK}a: b\r\n c\r\n\r\n`],
    ["a line end within a header", `${OK}a: b\nc: d\r\n\r\n`],
    ["lines that end otherwise", "HTTP/1.1 200 OK\ncontent-length: 1\n\na"],
    ["a control character", `${OK}a: \0\r\n\r\n`],
    ["two lengths", `${OK}content-length: 1\r\ncontent-length: 1\r\n\r\na`],
    ["a list of lengths", `${OK}content-length: 1, 1\r\n\r\na`],
    ["a length with a sign", `${OK}content-length: +1\r\n\r\na`],
    ["a length with a space of another kind", `${OK}content-length: 1\xa0\r\n\r\na`],
    ["a length in other digits", `${OK}content-length: 0x1\r\n\r\na`],
    ["a length beyond all numbers", `${OK}content-length: 9999999999999999\r\n\r\na`],
    ["a length and chunks", `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["another transfer coding", `${OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ["chunks twice", `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a chunk without a size", `${CHUNKED}\r\nabc\r\n`],
    ["a chunk's size with a sign", `${CHUNKED}-3\r\nabc\r\n`],
    ["a chunk's size beyond all numbers", `${CHUNKED}${"f".repeat(14)}\r\nabc`],
    ["a chunk's size that ends otherwise", `${CHUNKED}3\nabc\r\n`],
    ["a chunk that is longer than its size", `${CHUNKED}3\r\nabcd\r\n`],
    ["a trailer that is none", `${CHUNKED}0\r\nabc\r\n\r\n`],
    ["endless headers", `${OK}a: ${"b".repeat(20_000)}`],
    ["endless headers that end", `${OK}a: ${"b".repeat(20_000)}\r\n\r\n`],
    ["an endless size of a chunk", `${CHUNKED}3;${"a".repeat(2000)}`],
    ["more than 16,384 tiny chunks in a second", `${CHUNKED}${"1\r\na\r\n".repeat(16_385)}`],
    ["endless trailers", `${CHUNKED}0\r\n${"a: b\r\n".repeat(4000)}`],
  ])("with %s is broken", (_, text) => {
    // All of it arrives within a second, however slow the machine is.
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    expect(read([text])).toMatchObject({ end: "broken" });
    expect(read(text.split(""))).toMatchObject({ end: "broken" });
  });

  it("is reported as far as it was valid", () => {
    expect(read([`${CHUNKED}3\r\nabc\r\nzz\r\n`])).toMatchObject({ status: 200, body: "abc", end: "broken" });
  });
});

describe("how long a connection may be kept", () => {
  const keepAliveMs = (text: string): number => {
    const parser = new ResponseParser({ onHead: () => undefined, onData: () => undefined });
    parser.read(Buffer.from(`${text}\r\n\r\nx`));
    return parser.keepAliveMs;
  };

  it.each<[string, number]>([
    [`${OK}content-length: 1`, Infinity],
    [`${OK}content-length: 1\r\nkeep-alive: timeout=5, max=100`, 5000],
    [`${OK}content-length: 1\r\nkeep-alive: max=100`, Infinity],
    [`${OK}content-length: 1\r\nconnection: keep-alive`, Infinity],
    [`${OK}content-length: 1\r\nconnection: Close`, 0],
    [`${OK}content-length: 1\r\nconnection: x, close`, 0],
    [`${OK}x: y`, 0],
    [`${OK}content-length: 0`, 0],
    [`${OK}transfer-encoding: chunked\r\n\r\n0`, 0],
    [`${OK}transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0`, Infinity],
    ["HTTP/1.0 200 OK\r\ncontent-length: 1", 0],
    ["HTTP/1.1 206 x\r\ncontent-length: 1", Infinity],
    ["HTTP/1.1 204 x", 0],
    ["HTTP/1.1 204 x\r\ncontent-length: 1", 0],
    ["HTTP/1.1 205 x\r\ncontent-length: 1", 0],
    ["HTTP/1.1 304 x\r\ncontent-length: 1", 0],
    ["HTTP/1.1 302 x\r\ncontent-length: 1", 0],
    ["HTTP/1.1 400 x\r\ncontent-length: 1", 0],
    ["HTTP/1.1 429 x\r\ncontent-length: 1", 0],
    ["HTTP/1.1 500 x\r\ncontent-length: 1", 0],
    [`HTTP/1.1 100 x\r\n\r\nHTTP/1.1 103 x\r\n\r\n${OK}content-length: 1`, Infinity],
    [`HTTP/1.1 102 x\r\n\r\n${OK}content-length: 1`, 0],
    [`HTTP/1.1 199 x\r\n\r\nHTTP/1.1 100 x\r\n\r\n${OK}content-length: 1`, 0],
  ])("after %j", (text, ms) => {
    expect(keepAliveMs(text)).toBe(ms);
  });
});

/** Most of an answer: framed in one of many ways, some of them wrong. */
const answers = fc
  .record({
    status: fc.constantFrom("HTTP/1.1 200 OK", "HTTP/1.1 204 x", "HTTP/1.0 200 OK", "HTTP/1.1 500", "HTTP/1.1 304 x"),
    headers: fc.array(
      fc.constantFrom(
        "content-length: 5",
        "Content-Length:12",
        "transfer-encoding: chunked",
        "a: b",
        "connection: close",
        "x:",
      ),
      { maxLength: 3 },
    ),
    body: fc.constantFrom(
      "hello",
      "5\r\nhello\r\n0\r\n\r\n",
      "5;a=b\r\nhello\r\nc\r\n, everybody!\r\n0\r\nx-t: 1\r\n\r\n",
      "hello, everybody and more",
      "",
    ),
  })
  .map(({ status, headers, body }) => `${[status, ...headers].join("\r\n")}\r\n\r\n${body}`);

/** The same with some characters changed, doubled or left out. */
const damaged = fc
  .tuple(
    answers,
    fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        cut: fc.nat(1),
        put: fc.constantFrom("", "\r", "\n", "\r\n", " ", "\t", ":", "0", "5", "c", "\0", "\xa0", ",", ";"),
      }),
      { maxLength: 2 },
    ),
  )
  .map(([text, changes]) => {
    let result = text;
    for (const { at, cut, put } of changes) {
      const index = Math.floor(at * result.length);
      result = result.slice(0, index) + put + result.slice(index + cut);
    }
    return result;
  });

describe("any bytes", () => {
  it("are read alike however they are split", () => {
    fc.assert(
      fc.property(damaged, fc.array(fc.integer({ min: 1, max: 9 })), (text, lengths) => {
        const pieces: string[] = [];
        let at = 0;
        for (const length of lengths) pieces.push(text.slice(at, (at += length)));
        pieces.push(text.slice(at));
        const given = pieces.filter((piece) => piece !== "");
        // What comes after its end may be a piece that is not looked at.
        const { hasMore: _, ...split } = read(given, { closes: true });
        const { hasMore: __, ...whole } = read([text], { closes: true });
        expect(split).toEqual(whole);
      }),
      { numRuns: 5000 },
    );
  });

  it("are no whole answer that Node's own client reads as another one", async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(damaged, async (text) => {
        const ours = read([text], { closes: true });
        if (ours.end !== "whole" || ours.hasMore === true) return;
        compared += 1;
        expect(await readWithNode(text)).toEqual({ status: ours.status, body: ours.body });
      }),
      { numRuns: 8_000 },
    );
    expect(compared).toBeGreaterThan(400);
  });
});

/** What Node's client makes of a connection on which these bytes come, and then its end. */
function readWithNode(text: string): Promise<{ status: number | undefined; body: string } | string> {
  return new Promise((resolve) => {
    const socket = new Duplex({
      read() {},
      write(_, __, done) {
        done();
      },
      final(done) {
        this.push(Buffer.from(text, "latin1"));
        this.push(null);
        done();
      },
    });
    const call = request({ method: "POST", createConnection: () => socket }, (answer) => {
      let body = "";
      answer.setEncoding("latin1").on("data", (piece: string) => (body += piece));
      answer.on("end", () => resolve({ status: answer.statusCode, body }));
      answer.on("error", (error) => resolve(error.message));
    });
    call.on("error", (error) => resolve(error.message));
    call.end(() => socket.end());
  });
}
