import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { type Flood, pieceText, startFlood } from "./support/flood.ts";
import { DONE, envelope, TEXT_STREAMS } from "./support/text-streams.ts";
import { localModel } from "./support/upstream.ts";

const MIB = 1024 * 1024;
/** 125 MB, twice what the kernel may buffer, and less than a stream may have (MAX_ANSWER_BYTES). */
const PIECES = 7_500;
/** What the kernel may buffer on both connections: it enlarges a receive buffer up to tcp_rmem, often 6 to 32 MiB. */
const KERNEL_BYTES = 48 * MIB;

let flood: Flood;
let product: Product;

beforeAll(async () => {
  flood = await startFlood(PIECES);
  // Hundreds of megabytes of text are more tokens than a minute allows.
  const limits = { tokens_per_minute: "unlimited" };
  product = await startProduct({ config: { ...localModel(flood.url), limits, timeouts: { settle_ms: 0 } } });
});

afterAll(async () => {
  await product.stop();
  await flood.close();
});

/** Waits until nothing has been pulled from the upstream for half a second, and says how much was. */
async function stalledAt(): Promise<number> {
  let last = -1;
  let still = 0;
  await expect
    .poll(
      () => {
        const now = flood.pulledBytes();
        still = now === last ? still + 1 : 0;
        last = now;
        return still;
      },
      { timeout: 10_000, interval: 50 },
    )
    .toBeGreaterThanOrEqual(10);
  return last;
}

async function drain(texts: AsyncIterable<string>): Promise<void> {
  for await (const text of texts) expect(text).not.toBe(DONE);
}

describe.each(TEXT_STREAMS)("a slow reader over %s", (_, open) => {
  it(
    "stalls the upstream, costs little memory, and gets everything in order when it reads on",
    { timeout: 60_000 },
    async () => {
      const controller = new AbortController();
      const texts = open(product, controller.signal);
      const beforeBytes = product.rssBytes();
      expect(await texts.next()).toEqual({ done: false, value: pieceText(0) });

      const pulled = await stalledAt();
      expect(pulled).toBeGreaterThan(0);
      expect(pulled).toBeLessThanOrEqual(KERNEL_BYTES);
      expect(product.rssBytes() - beforeBytes).toBeLessThanOrEqual(64 * MIB);

      let next = 1;
      let ending = "";
      for (let read = await texts.next(); read.done !== true; read = await texts.next()) {
        if (read.value === pieceText(next)) next += 1;
        else ending += read.value;
      }
      expect(ending).toBe(DONE);
      expect(next).toBe(PIECES);
    },
  );

  it("that leaves closes the upstream within a second", async () => {
    const controller = new AbortController();
    const texts = open(product, controller.signal);
    await texts.next();
    await stalledAt();
    controller.abort();
    await expect.poll(() => flood.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);
    // What had arrived may still be read; then the stream ends as it did: aborted.
    await expect(drain(texts)).rejects.toThrow(/abort|cancel/i);
  });
});

const DEADLINE_MS = 4_000;

it.each([
  [
    "as server-sent events",
    "/v1/chat/completions",
    { "content-type": "application/json", "x-request-timeout-ms": DEADLINE_MS },
    Buffer.from(JSON.stringify({ model: "local/test", stream: true, messages: [{ role: "user", content: "hi" }] })),
  ],
  [
    "over Connect",
    "/parley.v1.CompletionService/Stream",
    { "content-type": "application/connect+json", "connect-timeout-ms": DEADLINE_MS },
    envelope(
      Buffer.from(JSON.stringify({ model: "local/test", messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] })),
    ),
  ],
])("a stream %s that is not read ends at its deadline, and upstream", async (_, path, headers, body) => {
  const asked = flood.exchanges.length;
  const asking = request(product.url + path, {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${product.firstKey}` },
  }).end(body);
  const beganMs = performance.now();
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
  expect(flood.exchanges).toHaveLength(asked + 1);
  await stalledAt();
  expect(flood.exchanges.at(-1)!.closed).toBe(false);
  expect(performance.now() - beganMs).toBeLessThan(DEADLINE_MS);
  await expect.poll(() => flood.exchanges.at(-1)!.closed, { timeout: 10_000, interval: 20 }).toBe(true);
  // A reader that continues gets the reason of the end.
  let tail = "";
  for await (const bytes of answer) tail = (tail + (bytes as Buffer).toString("latin1")).slice(-1_000);
  expect(tail).toContain("deadline_exceeded");
  expect(tail).not.toContain(DONE);
});
