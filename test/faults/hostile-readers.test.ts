import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { type Flood, pieceText, startFlood } from "../product/support/flood.ts";
import { TEXT_STREAMS } from "../product/support/text-streams.ts";
import { answerText, localModel, startUpstream } from "../product/support/upstream.ts";
import { callBlock, REQUEST } from "./hostile/floods.ts";
import { dataFrame, grpcMessage, headersFrame, INITIAL_WINDOW_SIZE, RawHttp2, TYPE } from "./hostile/raw-http2.ts";
import { MIB } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";
import { postChat } from "../support/post-json.ts";

/** 300 MB. Kernel buffers on loopback hold about 8 MB, so smaller answers would test nothing. */
const PIECES = 18_000;
const READERS = scale(1, 64);
/** A caller that reads nothing is disconnected after 30 s. */
const STALL_MS = 36_000;
/** Node checks the progress of a whole answer in intervals, so detection may take two of them. */
const WHOLE_STALL_MS = 66_000;
const IS_LONG = scale(0, 1) === 1;
const LIMITS = { tokens_per_minute: "unlimited", concurrent_requests: 500 };

let flood: Flood;
let product: Product;
const undo: (() => Promise<void>)[] = [];

beforeAll(async () => {
  flood = await startFlood(PIECES);
  product = await startProduct({ config: { ...localModel(flood.url), limits: LIMITS } });
});

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

afterAll(async () => {
  await product.stop();
  await flood.close();
});

/** Upstream exchanges after the first `count`. */
function answersAfter(count: number): Flood["exchanges"] {
  return flood.exchanges.slice(count);
}

/** Bytes sent on the connections of these exchanges. */
function pulled(exchanges: Flood["exchanges"]): number[] {
  return exchanges.map(({ response: { socket } }) => (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0));
}

/** Waits until nothing has been pulled from the upstream for half a second. */
async function stalled(before: number): Promise<void> {
  let last = "";
  let still = 0;
  await expect
    .poll(
      () => {
        const now = pulled(answersAfter(before)).join();
        still = now === last && answersAfter(before).length === READERS ? still + 1 : 0;
        last = now;
        return still;
      },
      { timeout: 60_000, interval: 50 },
    )
    .toBeGreaterThanOrEqual(10);
}

describe.each(TEXT_STREAMS.filter(([name]) => name !== "Connect"))("readers of 300 MB over %s", (entrance, open) => {
  it(
    "that stop reading use little memory, and are disconnected after a while",
    { timeout: timeLimit(60, 240) },
    async () => {
      const before = flood.exchanges.length;
      const controller = new AbortController();
      undo.push(async () => controller.abort());
      const bytesBefore = product.rssBytes();
      const readers = Array.from({ length: READERS }, () => open(product, controller.signal));
      const first = await Promise.all(readers.map((reader) => reader.next()));
      expect(new Set(first.map(({ value }) => value))).toEqual(new Set([pieceText(0)]));
      await stalled(before);
      const name = `${READERS} slow readers of 300 MB over ${entrance}`;
      const most = Math.max(...pulled(answersAfter(before)));
      // Most of it is in kernel buffers, which grow up to tcp_rmem, often 6 to 32 MiB.
      figure({ name: `${name}: pulled for each`, value: Math.round(most / MIB), unit: "MiB", atMost: 48 });
      const grown = (product.rssBytes() - bytesBefore) / MIB;
      // The first reader's figure includes memory that any load needs.
      const each = Math.max(0, grown - 48) / READERS;
      figure({
        name: `${name}: memory, beside 48 MiB, for each`,
        value: Math.round(each * 10) / 10,
        unit: "MiB",
        atMost: 16,
      });
      if (!IS_LONG) return;
      const begunMs = performance.now();
      await expect
        .poll(() => answersAfter(before).every(({ closed }) => closed), { timeout: STALL_MS, interval: 100 })
        .toBe(true);
      const goneMs = Math.round(performance.now() - begunMs);
      figure({ name: `${name}: gone`, value: goneMs, unit: "ms", atMost: STALL_MS });
    },
  );
});

describe("an answer that is not streamed", () => {
  it("and has 300 MB is aborted at the size limit of an answer", { timeout: 60_000 }, async () => {
    const piece = Buffer.alloc(16 * 1024, " ");
    let sent = 0;
    const upstream = await startUpstream(async ({ response }) => {
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      response.writeHead(200, { "content-type": "application/json" });
      for (let index = 0; index < PIECES && !gone.signal.aborted; index++) {
        sent += piece.length;
        if (!response.write(piece)) await once(response, "drain", { signal: gone.signal }).catch(() => undefined);
      }
      response.end();
    });
    undo.push(() => upstream.close());
    const other = await startProduct({ config: { ...localModel(upstream.url), limits: LIMITS } });
    undo.push(() => other.stop());
    const response = await postChat(other.url, other.firstKey, {
      model: "local/test",
      messages: [{ role: "user", content: "go" }],
    });
    expect({ status: response.status, text: await response.text() }).toMatchObject({ status: 500 });
    // The router may retry.
    const attempts = upstream.exchanges.length;
    const name = "an answer of 300 MB in JSON: pulled in each attempt";
    figure({ name, value: Math.round(sent / attempts / MIB), unit: "MiB", atMost: 80 });
  });

  it.skipIf(!IS_LONG)(
    "is not buffered for gRPC callers without a flow-control window",
    { timeout: 120_000 },
    async () => {
      const upstream = await startUpstream((exchange) => answerText(exchange, "x".repeat(4 * MIB)));
      undo.push(() => upstream.close());
      const other = await startProduct({ config: { ...localModel(upstream.url), limits: LIMITS } });
      undo.push(() => other.stop());
      const connections = Array.from({ length: 16 }, () => {
        const connection = new RawHttp2(other.grpcPort).hello([[INITIAL_WINDOW_SIZE, 0]]);
        connection.write(headersFrame(1, callBlock(other.firstKey), "body follows"));
        return connection.write(dataFrame(1, grpcMessage(REQUEST), "ends"));
      });
      await expect.poll(() => upstream.exchanges.filter(({ closed }) => closed).length, { timeout: 20_000 }).toBe(16);
      const begunMs = performance.now();
      const isReset = (connection: RawHttp2): boolean =>
        connection.closed || connection.arrived.some(({ type, stream }) => type === TYPE.reset && stream === 1);
      await expect.poll(() => connections.every(isReset), { timeout: WHOLE_STALL_MS, interval: 100 }).toBe(true);
      const goneMs = Math.round(performance.now() - begunMs);
      figure({
        name: "unread whole answers over gRPC: time until reset",
        value: goneMs,
        unit: "ms",
        atMost: WHOLE_STALL_MS,
      });
      for (const connection of connections) connection.close();
    },
  );
});
