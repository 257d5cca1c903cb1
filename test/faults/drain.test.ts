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
import { scale, seed, timeLimit } from "../support/scale.ts";
import { UNLIMITED } from "../support/unlimited.ts";

const STREAMS = scale(200, 1_000);
/** Callers that connect at the same moment; more would exceed the listen backlog. */
const AT_ONCE = 50;
/** Streams end one after the other within this time. */
const ENDING_MS = 1_000;
const NEW_REQUESTS = 20;

/**
 * Starts a product with this many streams in flight, on all entrances in turn. Each has sent "Once" and waits for its
 * upstream.
 */
async function withStreams(
  count: number,
  { shutdown = {}, http = {}, ledger = {} }: { shutdown?: object; http?: object; ledger?: object } = {},
) {
  const upstream = await startUpstream(({ response }) => {
    beginStream(response);
    response.write(textEvent("Once"));
  });
  onTestFinished(() => upstream.close());
  const listening = { listen: "127.0.0.1:0", ...http };
  const config = { ...localModel(upstream.url), limits: UNLIMITED, shutdown, ledger, http: listening };
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

/** Result of a new request while the product stops, as error code of the operating system or of gRPC. */
async function sendNew({ url, grpcPort }: Product, entrance: "http" | "grpc"): Promise<string> {
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

it.each([
  ["on their ports", {}, {}],
  ["on one port", { grpc: true }, {}],
  ["with an interval of the ledger", {}, { durability: "interval" }],
])(
  `SIGTERM with ${STREAMS} streams in flight cuts none, refuses new requests, and the process exits after the last one: %s`,
  async (where, http, ledger) => {
    const { product, upstream, streams } = await withStreams(STREAMS, { http, ledger });
    product.signal("SIGTERM");
    await expect.poll(() => sendNew(product, "http")).toBe("ECONNREFUSED");
    const results = await Promise.all(
      Array.from({ length: NEW_REQUESTS }, (_, index) => sendNew(product, index % 2 === 0 ? "http" : "grpc")),
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

    figure({
      name: `drain, ${where}: streams in flight that were completed`,
      value: whole.length,
      unit: "",
      atLeast: STREAMS,
    });
    const refused = results.filter((how) => how === "ECONNREFUSED" || how === "Unavailable");
    expect(results).toEqual(refused);
    figure({
      name: `drain, ${where}: new requests refused with UNAVAILABLE or a closed port`,
      value: refused.length,
      unit: "",
      atLeast: NEW_REQUESTS,
    });
    expect(ending).toEqual({ code: 0, signal: null });
    figure({
      name: `drain, ${where}: from the last stream's end to the exit`,
      value: tookMs,
      unit: "ms",
      atMost: 1_500,
    });
    const entries = await readLedger(join(product.home, "data"));
    expect(entries).toHaveLength(STREAMS);
    expect(entries.filter(({ outcome, partial }) => outcome !== "served" || partial)).toEqual([]);
  },
  timeLimit(120, 300),
);

it(
  "SIGTERM ends streams that exceed the drain time with an error, and their ledger entries say so",
  async () => {
    const LONGER = 30;
    const { product, upstream, streams } = await withStreams(LONGER, { shutdown: { drain_ms: 1_000 } });
    product.signal("SIGTERM");
    const endings = await Promise.allSettled(streams.map((stream) => Array.fromAsync(stream)));
    const told = endings.filter(
      (ending) => ending.status === "rejected" && /shutting down/.test(String(ending.reason)),
    );
    figure({
      name: "drain: streams beyond the drain time that ended with an error",
      value: told.length,
      unit: "",
      atLeast: LONGER,
    });
    expect(await product.ending).toEqual({ code: 0, signal: null });
    await expect.poll(() => upstream.exchanges.every(({ closed }) => closed)).toBe(true);
    const entries = await readLedger(join(product.home, "data"));
    expect(entries).toHaveLength(LONGER);
    expect(entries.filter(({ outcome, partial }) => outcome !== "overloaded" || !partial)).toEqual([]);
  },
  timeLimit(60, 60),
);
