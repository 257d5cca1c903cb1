import { describe, expect, it } from "vitest";
import { connectUpstream } from "../../src/providers/transport/http.ts";
import { startRawServer } from "../providers/transport/raw-server.ts";
import { callers } from "./fuzz/callers.ts";
import { readCorpus } from "./fuzz/corpus.ts";
import { Findings } from "./fuzz/findings.ts";
import { randomOf } from "./fuzz/random.ts";
import { type SseInput, sseInput } from "./fuzz/sse-inputs.ts";
import { describe as inWords, isSame, type Reading, readFrom, readPieces } from "./fuzz/sse-reading.ts";
import { type DialectName, sampleStreams, STREAM_DIALECTS } from "./fuzz/sse-streams.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const COUNT = scale(20_000, 1_000_000);
const ON_SOCKETS = scale(500, 20_000);

const streams = sampleStreams();

/** Result of each undamaged stream that arrives in one piece. */
const atOnce = new Map(
  await Promise.all(
    streams.map(async ({ dialect, text }) => [text, await readPieces(dialect, [Buffer.from(text)])] as const),
  ),
);

/** Returns what is wrong with the reading of a stream in pieces, if anything. */
async function flawOf(input: SseInput, split: Reading): Promise<string | undefined> {
  const { dialect, bytes, same } = input;
  if (split.flaw !== undefined) return split.flaw;
  const whole = same === undefined ? await readPieces(dialect, [bytes]) : atOnce.get(same.text)!;
  if (!isSame(split, whole)) return `split: ${inWords(split)}; at once: ${inWords(whole)}`;
  const isEnded = STREAM_DIALECTS[dialect].ending.test(bytes.toString());
  return split.failure === undefined && !isEnded ? "a success without a reason for the end" : undefined;
}

describe("streams of providers", () => {
  it("of the corpus end as expected, for any split", async () => {
    const findings = new Findings("sse");
    const files = readCorpus("sse");
    for (const { name, bytes } of files) {
      const [expected, dialect] = name.split(".") as ["served" | "failed", DialectName];
      const pieces = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
      const reading = await readPieces(dialect, pieces);
      const ended = reading.failure === undefined ? "served" : "failed";
      findings.note({ name, bytes }, ended === expected ? undefined : inWords(reading));
      findings.note({ name, bytes }, await flawOf({ dialect, bytes, pieces, same: undefined }, reading));
    }
    findings.conclude(`event streams misread, of ${files.length} in the corpus`);
  });

  it(
    "give the same result for any split, and never succeed without an end",
    async () => {
      const findings = new Findings("sse");
      const ended = { served: 0, failed: 0 };
      for (let index = 0; index < COUNT; index++) {
        const input = sseInput(streams, randomOf("sse", index));
        const reading = await readPieces(input.dialect, input.pieces);
        findings.progress(index);
        ended[reading.failure === undefined ? "served" : "failed"] += 1;
        findings.note({ name: `${index}.${input.dialect}`, bytes: input.bytes }, await flawOf(input, reading));
      }
      figure({ name: "fuzzed event streams, in process", value: COUNT, unit: "", atLeast: COUNT });
      findings.conclude("fuzzed event streams that were misread");
      // Served as well as failed, or the inputs test little.
      expect(Math.min(ended.served, ended.failed)).toBeGreaterThan(COUNT / 10);
    },
    timeLimit(600, 14_400),
  );

  it(
    "give the same result over real connections",
    async () => {
      const findings = new Findings("sse-sockets");
      const inputs = new Map<string, SseInput>();
      const server = await startRawServer((socket, request) => {
        const input = inputs.get(/x-input: (\d+)/.exec(request)![1]!)!;
        socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
        for (const piece of input.pieces) {
          if (piece.length === 0) continue;
          socket.write(`${piece.length.toString(16)}\r\n`);
          socket.write(piece);
          socket.write("\r\n");
        }
        socket.write("0\r\n\r\n");
      });
      const upstream = connectUpstream({
        baseUrl: `http://127.0.0.1:${server.port}`,
        allowPrivate: true,
        connectMs: 5000,
      });
      try {
        await callers({ count: ON_SOCKETS, atOnce: 16 }, () => async (index) => {
          const input = sseInput(streams, randomOf("sse-sockets", index));
          inputs.set(String(index), input);
          const reading = await readFrom(upstream, input.dialect, { "x-input": String(index) });
          inputs.delete(String(index));
          findings.note({ name: `${index}.${input.dialect}`, bytes: input.bytes }, await flawOf(input, reading));
        });
      } finally {
        await upstream.close();
        await server.stop();
      }
      figure({ name: "fuzzed event streams over sockets", value: ON_SOCKETS, unit: "", atLeast: ON_SOCKETS });
      findings.conclude("fuzzed event streams that were misread over sockets");
    },
    timeLimit(300, 3600),
  );
});
