import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EVENT_STREAM, type EventStreamMessage } from "../../../src/providers/wire/event-stream.ts";
import { eventFrame, exceptionFrame, frame } from "../../support/bedrock/frames.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const TOO_LARGE = "The upstream provider sent an event larger than this gateway reads.";
const TRUNCATED = "The upstream provider closed the stream before it was complete.";

/** Reads the pieces; with the message of what was thrown, if anything was. */
async function read(
  pieces: readonly Buffer[],
): Promise<{ messages: EventStreamMessage[]; thrown: string | undefined }> {
  const parser = await EVENT_STREAM.createParser();
  const messages: EventStreamMessage[] = [];
  try {
    for (const piece of pieces) for (const message of parser.push(piece)) messages.push(message);
    for (const message of parser.end()) messages.push(message);
  } catch (error) {
    return { messages, thrown: (error as Error).message };
  }
  return { messages, thrown: undefined };
}

function split(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index], cut));
}

const MESSAGES: EventStreamMessage[] = [
  { kind: "event", type: "messageStart", data: '{"role":"assistant"}' },
  { kind: "event", type: "contentBlockDelta", data: '{"delta":{"text":"Grüße 🙂"}}' },
  { kind: "exception", type: "throttlingException", data: '{"message":"Too many requests"}' },
];
const BYTES = Buffer.concat([
  eventFrame("messageStart", { role: "assistant" }),
  eventFrame("contentBlockDelta", { delta: { text: "Grüße 🙂" } }),
  exceptionFrame("throttlingException", "Too many requests"),
]);

describe("AWS's event stream", () => {
  it("is read the same however its bytes are split", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 40 }), async (places) => {
        expect(await read(split(BYTES, places))).toEqual({ messages: MESSAGES, thrown: undefined });
      }),
    );
    expect((await read([...BYTES].map((byte) => Buffer.from([byte])))).messages).toEqual(MESSAGES);
  });

  it("reports an error message like an exception, and skips messages of unknown kinds", async () => {
    const error = frame({ ":message-type": "error", ":error-code": "internalFailure", ":error-message": "Oh." }, "");
    const unknown = frame({ ":message-type": "greeting" }, "hello");
    expect((await read([Buffer.concat([unknown, error])])).messages).toEqual([
      { kind: "exception", type: "internalFailure", data: '{"message":"Oh."}' },
    ]);
  });

  it("is damaged with any changed byte, and never read as something else", async () => {
    for (let index = 0; index < BYTES.length; index++) {
      const damaged = Buffer.from(BYTES);
      damaged[index]! ^= 0x40;
      const { messages, thrown } = await read(split(damaged, [index * 7, index * 13]));
      expect(thrown).toBeDefined();
      expect(MESSAGES.slice(0, messages.length)).toEqual(messages);
    }
  });

  it("is truncated at any place within a message", async () => {
    const whole = new Set([0, eventFrame("messageStart", { role: "assistant" }).length]);
    for (let length = 0; length < 150; length++) {
      const { thrown } = await read([BYTES.subarray(0, length)]);
      expect(thrown === undefined, String(length)).toBe(whole.has(length));
    }
  });

  it("gives what came before damage in the same bytes", async () => {
    const bytes = Buffer.concat([
      eventFrame("messageStart", { role: "assistant" }),
      Buffer.from("HTTP/1.1 502 Bad Gateway"),
    ]);
    expect(await read([bytes])).toEqual({
      messages: MESSAGES.slice(0, 1),
      thrown: "The upstream provider's event stream is damaged.",
    });
  });

  it.each([
    ["headers beyond 128 KiB", 128 * 1024 + 1, 0, TOO_LARGE],
    ["a payload beyond 24 MiB", 40, 24 * 1024 * 1024 + 1, TOO_LARGE],
    ["headers longer than itself", 41, -1, "The upstream provider's event stream is damaged."],
    ["headers and a payload up to these", 128 * 1024, 24 * 1024 * 1024, TRUNCATED],
  ])("is refused at the beginning of a message, or not: with %s", async (_, headersBytes, payloadBytes, thrown) => {
    const prelude = Buffer.alloc(12);
    prelude.writeUInt32BE(16 + headersBytes + payloadBytes, 0);
    prelude.writeUInt32BE(headersBytes, 4);
    prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
    expect((await read([prelude])).thrown).toBe(thrown);
  });

  it("takes little more memory than its bytes when they come one by one", async () => {
    const bytes = eventFrame("contentBlockDelta", { text: "x".repeat(500_000) });
    const parser = await EVENT_STREAM.createParser();
    collectGarbage();
    const before = process.memoryUsage();
    let early = 0;
    for (const byte of bytes.subarray(0, -1)) early += [...parser.push(Buffer.from([byte]))].length;
    collectGarbage();
    const after = process.memoryUsage();
    const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    expect(grown / bytes.length).toBeLessThan(10);
    expect(early + [...parser.push(bytes.subarray(-1))].length).toBe(1);
  });
});
