import { createClient, Code, ConnectError } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ModelService } from "../../gen/parley/v1/model_pb.js";
import { createDice } from "../../src/simulator/dice.ts";
import { DONE, TEXT_STREAMS } from "../product/support/text-streams.ts";
import { beginStream, END_EVENTS, localModel, startUpstream, textEvent } from "../product/support/upstream.ts";
import { type Product, startProduct } from "../support/product.ts";
import { figure } from "./support/figures.ts";
import { readLedger } from "./support/ledger.ts";
import { scale, seed, timeLimit } from "./support/scale.ts";
import { UNLIMITED } from "../support/unlimited.ts";

const STREAMS = scale(200, 1_000);
/** So many callers connect at the same moment; more would wait for the operating system. */
const AT_ONCE = 50;
/** Streams end one after the other, over this time. */
const ENDING_MS = 1_000;
const NEWCOMERS = 20;

/** A product with so many streams under way, over every entrance in turn: each has said "Once", and waits for its upstream. */
async function withStreams(count: number, shutdown: object = {}) {
  const upstream = await startUpstream(({ response }) => {
    beginStream(response);
    response.write(textEvent("Once"));
  });
  onTestFinished(() => upstream.close());
  const config = { ...localModel(upstream.url), limits: UNLIMITED, shutdown };
  const product = await startProduct({ config });
  onTestFinished(() => product.stop());
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const streams: AsyncGenerator<string>[] = [];
  while (streams.length < count) {
    const size = Math.min(AT_ONCE, count - streams.length);
    const next = Array.from({ length: size }, (_, index) => {
      const [, open] = TEXT_STREAMS[(streams.length + index) % TEXT_STREAMS.length]!;
      return open(product, gone.signal);
    });
    for (const { value } of await Promise.all(next.map((stream) => stream.next()))) expect(value).toBe("Once");
    streams.push(...next);
  }
  return { product, upstream, streams };
}

/** How somebody fares who comes when the product is stopping: in the words of the operating system, or of gRPC. */
async function newcomer({ url, grpcPort }: Product, entrance: "http" | "grpc"): Promise<string> {
  if (entrance === "http") {
    return fetch(`${url}/v1/models`).then(
      ({ status }) => `answered with ${status}`,
      (error: Error & { cause?: { code?: string } }) => error.cause?.code ?? error.message,
    );
  }
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` });
  return createClient(ModelService, transport)
    .list({})
    .then(
      () => "answered",
      (error: unknown) => Code[ConnectError.from(error).code],
    );
}

it(
  `SIGTERM with ${STREAMS} streams under way cuts none, refuses newcomers, and the process ends with the last one`,
  async () => {
    const { product, upstream, streams } = await withStreams(STREAMS);
    product.signal("SIGTERM");
    await expect.poll(() => newcomer(product, "http")).toBe("ECONNREFUSED");
    const newcomers = await Promise.all(
      Array.from({ length: NEWCOMERS }, (_, index) => newcomer(product, index % 2 === 0 ? "http" : "grpc")),
    );
    const dice = createDice(`drain ${seed()}`);
    const endings = Promise.all(
      streams.map((stream) => Array.fromAsync(stream).catch((error: unknown) => [String(error)])),
    );
    for (const { response } of upstream.exchanges) {
      void delay(dice.roll(ENDING_MS)).then(() => response.end(textEvent(" upon") + END_EVENTS));
    }
    const whole = (await endings).filter(([text, end]) => text === " upon" && end === DONE);
    const lastMs = performance.now();
    const ending = await product.ending;
    const tookMs = Math.round(performance.now() - lastMs);

    figure({ name: "drain: streams under way that were finished", value: whole.length, unit: "", atLeast: STREAMS });
    const polite = newcomers.filter((how) => how === "ECONNREFUSED" || how === "Unavailable");
    expect(newcomers).toEqual(polite);
    figure({ name: "drain: newcomers refused politely", value: polite.length, unit: "", atLeast: NEWCOMERS });
    expect(ending).toEqual({ code: 0, signal: null });
    figure({ name: "drain: from the last stream's end to the exit", value: tookMs, unit: "ms", atMost: 1_500 });
    const entries = await readLedger(join(product.home, "data"));
    expect(entries).toHaveLength(STREAMS);
    expect(entries.filter(({ outcome, partial }) => outcome !== "served" || partial)).toEqual([]);
  },
  timeLimit(120, 300),
);

it(
  "SIGTERM ends streams that take longer than the drain with an error, and they are in the ledger as cut off",
  async () => {
    const LONGER = 30;
    const { product, upstream, streams } = await withStreams(LONGER, { drain_ms: 1_000 });
    product.signal("SIGTERM");
    const endings = await Promise.allSettled(streams.map((stream) => Array.fromAsync(stream)));
    const told = endings.filter(
      (ending) => ending.status === "rejected" && /shutting down/.test(String(ending.reason)),
    );
    figure({ name: "drain: streams beyond its time that were told so", value: told.length, unit: "", atLeast: LONGER });
    expect(await product.ending).toEqual({ code: 0, signal: null });
    await expect.poll(() => upstream.exchanges.every(({ closed }) => closed)).toBe(true);
    const entries = await readLedger(join(product.home, "data"));
    expect(entries).toHaveLength(LONGER);
    expect(entries.filter(({ outcome, partial }) => outcome !== "overloaded" || !partial)).toEqual([]);
  },
  timeLimit(60, 60),
);
