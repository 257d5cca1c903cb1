import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ENTRY_OF_4_KIB, NEWEST_ENTRY, rememberedHeader, REQUEST } from "./hostile/floods.ts";
import { dataFrame, grpcHeaders, grpcMessage, headerBlock, headersFrame, RawHttp2, TYPE } from "./hostile/raw-http2.ts";
import { CREATE, MIB, startTarget, type Target } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

/*
 * Callers without a key open calls that they never complete, or whose headers expand a hundredfold. Other requests are
 * served meanwhile.
 */

/** SETTINGS_MAX_CONCURRENT_STREAMS. */
const CALLS = 990;
const HOLD_MS = 4_000;

let target: Target;
beforeAll(async () => {
  target = await startTarget();
});
afterAll(() => target.stop());

const MESSAGE = grpcMessage(REQUEST);
const plain = headerBlock(grpcHeaders(CREATE));
/** A header of 4 KiB, repeated fifteen times with one byte each. */
function repeated(name: string, character: string, index: number): Buffer {
  const again = Buffer.alloc(15, NEWEST_ENTRY);
  if (index > 0) return Buffer.concat([plain, again]);
  return Buffer.concat([plain, rememberedHeader(name, character.repeat(ENTRY_OF_4_KIB)), again]);
}

it.each<[string, number, (index: number) => Buffer]>([
  ["with ordinary headers", scale(60, 160), () => plain],
  ["with a header that HPACK repeats", 8, (index) => repeated("x-a", "a", index)],
  ["with binary metadata of commas", 8, (index) => repeated("x-bin", ",", index)],
])(
  "calls %s that are never completed do not delay other requests",
  { timeout: timeLimit(60, 120) },
  async (what, connections, block) => {
    const before = target.product.rssBytes();
    const attackers = Array.from({ length: connections }, () => new RawHttp2(target.product.grpcPort).hello());
    for (const attacker of attackers) {
      const frames = Array.from({ length: CALLS }, (_, index) =>
        headersFrame(2 * index + 1, block(index), "body follows"),
      );
      attacker.write(Buffer.concat(frames));
    }
    const took: number[] = [];
    let mostBytes = 0;
    for (const endMs = performance.now() + HOLD_MS; performance.now() < endMs; await sleep(50)) {
      took.push(await target.goodRequest());
      mostBytes = Math.max(mostBytes, target.product.rssBytes() - before);
    }
    for (const attacker of attackers) attacker.close();
    figure({
      name: `calls ${what}: slowest request of others`,
      value: Math.round(Math.max(...took)),
      unit: "ms",
      atMost: 4000,
    });
    figure({ name: `calls ${what}: memory`, value: Math.round(mostBytes / MIB), unit: "MiB", atMost: 512 });
    expect(target.heard()).toBeGreaterThan(0);
    expect(target.product.output.stderr).not.toMatch(/"level":"(fatal|error)"/);
  },
);

it.each([
  ["in one piece", MESSAGE.length],
  ["whose prefix comes in two pieces", 1],
  ["whose prefix comes in two pieces of almost all", 4],
])("calls with a second message that is too large, after one %s, hold no resources", async (_name, firstPiece) => {
  const attacker = new RawHttp2(target.product.grpcPort).hello();
  const streams = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
  const first = (stream: number): Buffer[] => [
    headersFrame(stream, plain, "body follows"),
    dataFrame(stream, MESSAGE.subarray(0, firstPiece), "more follows"),
  ];
  await attacker.send(Buffer.concat(streams.flatMap(first)));
  await sleep(200);
  const rest = MESSAGE.subarray(firstPiece);
  if (rest.length > 0)
    await attacker.send(Buffer.concat(streams.map((stream) => dataFrame(stream, rest, "more follows"))));
  // grpc-js decodes the second message only when it arrives in a separate DATA frame.
  await sleep(200);
  const second = grpcMessage(Buffer.alloc(0), { length: 0xffff_ffff });
  await attacker.send(Buffer.concat(streams.map((stream) => dataFrame(stream, second, "ends"))));
  await expect.poll(() => attacker.arrived.filter(({ type }) => type === TYPE.headers).length).toBe(streams.length);
  attacker.close();
  const activeCalls = async (): Promise<unknown> =>
    ((await (await fetch(`${target.product.operationsUrl}/readyz`)).json()) as Record<string, unknown>)["active_calls"];
  await expect.poll(activeCalls).toBe(0);
});
