import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { connectUpstream, type Upstream } from "../../../src/providers/transport/http.ts";
import { chunkOf, startRawServer } from "./raw-server.ts";

/*
 * A provider, or a proxy before it, that answers one request in a way that leaves bytes behind which look like an answer:
 * the requests of other callers that follow must get their own answers, however late those bytes come.
 */

const HOSTILE = "HOSTILE";
const STRAY = "STRAY";

const answerOf = (text: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
const stray = answerOf(STRAY);

/** What the provider sends for the hostile request: pieces, each so many milliseconds after the one before. */
type Script = readonly (string | number)[];

const status = (line: string, ...headers: string[]): string =>
  `HTTP/1.1 ${line}\r\n${[...headers, "\r\n"].join("\r\n")}`;
const length = (bytes: string | number): string =>
  `content-length: ${typeof bytes === "string" ? bytes.length : bytes}`;
const CHUNKED = "transfer-encoding: chunked";
const chunked = `${chunkOf(STRAY)}0\r\n\r\n`;

/** Bodies that the status denies, which come with the head or later. */
const DENIED: [string, Script][] = ["204 No Content", "205 Reset Content", "304 Not Modified"].flatMap((line) =>
  [0, 1, 5, 30].flatMap((ms): [string, Script][] => [
    [`${line} with a length, and the bytes after ${ms} ms`, [status(line, length(stray)), ms, stray]],
    [`${line} in chunks, and the bytes after ${ms} ms`, [status(line, CHUNKED), ms, stray]],
    [`${line} without a length, and the bytes after ${ms} ms`, [status(line), ms, stray]],
  ]),
);

/** A whole answer, and after it unsolicited bytes. */
const LATE: [string, Script][] = [0, 1, 5, 30].flatMap((ms): [string, Script][] => [
  [`a second answer after ${ms} ms`, [answerOf("first"), ms, stray]],
  [`100 and an answer after ${ms} ms`, [answerOf("first"), ms, status("100 Continue"), ms, stray]],
  [`a second answer ${ms} ms after chunks`, [status("200 OK", CHUNKED) + chunked, ms, stray]],
  [`a second answer ${ms} ms after an error`, [status("429 Too Many", length(0)), ms, stray]],
]);

const OK = "200 OK";
/** Answers without a body that come to one after all, also long after the pause in which a connection is not used. */
const EMPTY: [string, Script][] = [0, 30, 150].flatMap((ms): [string, Script][] => [
  [`an empty answer, and a body after ${ms} ms`, [status(OK, length(0)), ms, stray]],
  [`an answer without chunks, and a body after ${ms} ms`, [`${status(OK, CHUNKED)}0\r\n\r\n`, ms, stray]],
]);

/** Answers that two readers may take for two different things. */
const AMBIGUOUS: [string, Script][] = [
  ["a length and chunks", [status(OK, length(5), CHUNKED) + chunked + stray]],
  ["chunks and a length", [status(OK, CHUNKED, length(stray)) + `0\r\n\r\n${stray}`]],
  ["a list of lengths", [status(OK, "content-length: 0, 5") + stray]],
  ["two lengths", [status(OK, length(0), length(stray)) + stray]],
  ["a length with a sign", [status(OK, "content-length: +0") + stray]],
  ["a negative length", [status(OK, "content-length: -1") + stray]],
  ["a length in hexadecimal digits", [status(OK, "content-length: 0x0") + stray]],
  ["a length beyond all numbers", [status(OK, "content-length: 18446744073709551616") + stray]],
  ["a length after a space", [status(OK, "content-length : 0") + stray]],
  ["a folded header", [status(OK, "a: b", " content-length: 0", length(0)) + stray]],
  ["a bare carriage return", [status(OK, `a: b\rcontent-length: ${stray.length}`, length(0)) + stray]],
  ["a bare line feed", [status(OK, `a: b\ncontent-length: ${stray.length}`, length(0)) + stray]],
  ["lines that end in line feeds", [`HTTP/1.1 200 OK\ncontent-length: 0\n\n${stray}`]],
  ["a NUL in a header", [status(OK, "a: \0", length(0)) + stray]],
  ["another transfer coding", [status(OK, "transfer-encoding: gzip, chunked") + chunked + stray]],
  ["chunks twice", [status(OK, CHUNKED, CHUNKED) + chunked + stray]],
  ["a chunk with an extension", [status(OK, CHUNKED) + `5;a="\r\n${STRAY}\r\n0\r\n\r\n${stray}`]],
  ["a chunk whose size ends in a line feed", [status(OK, CHUNKED) + `5;\n${STRAY}\r\n0\r\n\r\n${stray}`]],
  ["a chunk with a sign", [status(OK, CHUNKED) + `+5\r\n${STRAY}\r\n0\r\n\r\n${stray}`]],
  ["a chunk's size that overflows", [status(OK, CHUNKED) + `100000000000000005\r\n${STRAY}\r\n0\r\n\r\n${stray}`]],
  ["a chunk that is longer than its size", [status(OK, CHUNKED) + `1\r\n${STRAY}\r\n0\r\n\r\n${stray}`]],
  ["a trailer with a length", [status(OK, CHUNKED) + `0\r\n${length(stray)}\r\n\r\n`, 5, stray]],
  ["a trailer that is an answer", [status(OK, CHUNKED) + `0\r\n${stray}`]],
  ["HTTP/1.0", [`HTTP/1.0 200 OK\r\n${length(5)}\r\n\r\nfirst`, 5, stray]],
  ["HTTP/1.0 that would be kept", [`HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n${length(5)}\r\n\r\nfirst`, 5, stray]],
  ["a connection that is closed in words only", [status(OK, "connection: close", length(5)) + "first", 5, stray]],
  ["close among others", [status(OK, "connection: keep-alive, close", length(5)) + "first", 5, stray]],
  ["another protocol", [status("101 Switching Protocols", "upgrade: x", "connection: upgrade"), 5, stray]],
  ["102 before the answer", [status("102 Processing") + answerOf("first"), 5, stray]],
  ["199 before the answer", [status("199 x") + answerOf("first"), 5, stray]],
  ["100 with a length", [status("100 Continue", length(stray)) + stray + answerOf("first")]],
  ["103 in chunks", [status("103 Early Hints", CHUNKED) + chunked + answerOf("first")]],
  [
    "informational answers without end",
    [status("103 Early Hints", "a: b").repeat(2_000) + answerOf("first"), 5, stray],
  ],
  ["102 without end", [status("102 Processing").repeat(2_000) + answerOf("first"), 5, stray]],
  ["an empty line before the next", [answerOf("first"), 5, `\r\n${stray}`]],
  ["half of the next one's head", [answerOf("first"), 5, stray.slice(0, 20), 20, stray.slice(20)]],
];

const VECTORS: [string, Script][] = [...DENIED, ...LATE, ...EMPTY, ...AMBIGUOUS];

/** How long the provider thinks about a request that is not hostile. */
const THINK_MS = 60;

/** Echoes each request's text after a while; hostile ones have their own answer, and its stray part comes as written. */
async function serve(script: Script) {
  const sent = Promise.withResolvers<void>();
  const play = async (socket: Socket): Promise<void> => {
    for (const part of script) {
      if (typeof part === "number") await delay(part);
      else if (!socket.destroyed) socket.write(part, "latin1");
    }
    sent.resolve();
  };
  const reply = async (socket: Socket, text: string): Promise<void> => {
    await delay(THINK_MS);
    if (text === HOSTILE) await play(socket);
    else if (!socket.destroyed) socket.write(answerOf(text));
  };
  const server = await startRawServer((socket, request) => {
    void reply(socket, request.split("\r\n\r\n")[1]!);
  });
  const upstream = connectUpstream({
    baseUrl: `http://127.0.0.1:${server.port}`,
    allowPrivate: true,
    connectMs: 2_000,
  });
  const stop = async (): Promise<void> => {
    await upstream.close();
    await server.stop();
  };
  return { upstream, sent: sent.promise, stop };
}

/** What a caller reads for its text; undefined when the request fails. */
async function ask(upstream: Upstream, text: string): Promise<string | undefined> {
  try {
    const { signal } = new AbortController();
    const answer = await upstream.post({ path: "/x", headers: {}, body: text, signal, idleMs: 2_000 }, "*/*");
    const read = Buffer.concat([...(await answer.body())]).toString();
    return answer.status === 200 ? read : undefined;
  } catch {
    return undefined;
  }
}

describe.concurrent("after a provider's answer with unsolicited bytes callers get their own answers", () => {
  it.each(VECTORS)("%s", async (_, script) => {
    const { upstream, sent, stop } = await serve(script);
    // A connection that has been used, as most have been.
    const reads = [["before", await ask(upstream, "before")]];
    await ask(upstream, HOSTILE);
    // At once, while the stray bytes come, and long after: one after the other, as they would share a connection.
    const others: Promise<(string | undefined)[]>[] = [];
    for (let count = 0; count < 12; count++) {
      const text = `caller ${count}`;
      others.push(ask(upstream, text).then((read) => [text, read]));
      await delay(count < 8 ? 4 : 130);
    }
    await sent;
    reads.push(...(await Promise.all(others)));
    await stop();
    expect(reads).toEqual(reads.map(([text]) => [text, text]));
  });
});

it("there are as many such answers as there were in the attack, and more", () => {
  expect(VECTORS.length).toBeGreaterThanOrEqual(56);
});
