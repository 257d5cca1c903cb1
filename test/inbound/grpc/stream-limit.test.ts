import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { REQUEST } from "../../faults/hostile/floods.ts";
import { grpcHeaders, headerBlock, headersFrame, RawHttp2, TYPE } from "../../faults/hostile/raw-http2.ts";
import { BODY, CREATE } from "../../faults/hostile/target.ts";
import { answerText, localModel, startUpstream } from "../../product/support/upstream.ts";
import { type Product, startProduct } from "../../support/product.ts";

/** Five times as many as the first limit of a connection. */
const CALLS = 500;
const SETTINGS_MAX_CONCURRENT_STREAMS = 3;

let product: Product;
let front: Product;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
/** Upstream calls that wait until all have arrived: the test fails unless all calls are in flight at once. */
let waiting: (() => void)[] = [];

beforeAll(async () => {
  upstream = await startUpstream(async (exchange) => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length < CALLS) return;
      for (const release of waiting) release();
      waiting = [];
    });
    answerText(exchange, "hi");
  });
  const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited", concurrent_requests: CALLS };
  product = await startProduct({ config: { ...localModel(upstream.url), limits } });
  front = await startProduct({ flags: ["--role", "front", "--core", `127.0.0.1:${product.grpcPort}`] });
});

afterAll(async () => {
  await front.stop();
  await product.stop();
  await upstream.close();
});

/** Makes all calls at once on a new connection; returns the number of answers. */
async function callWithGrpcJs(port: number): Promise<number> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${product.firstKey}`);
  const pass = (bytes: Buffer): Buffer => bytes;
  const one = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(CREATE, pass, pass, Buffer.from(REQUEST), metadata, (error, answer) =>
        error === null ? resolve(answer) : reject(error),
      );
    });
  const answers = await Promise.all(Array.from({ length: CALLS }, one));
  client.close();
  return answers.length;
}

async function callWithConnect(port: number): Promise<number> {
  const client = createClient(CompletionService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
  const headers = { authorization: `Bearer ${product.firstKey}` };
  const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }];
  const one = () => client.create({ model: "local/test", messages }, { headers });
  return (await Promise.all(Array.from({ length: CALLS }, one))).length;
}

describe("a connection without calls in flight", () => {
  it("has at most 100 streams, and ends at the next one", async () => {
    const connection = new RawHttp2(product.grpcPort).hello();
    const block = headerBlock(grpcHeaders(CREATE));
    const open = (from: number, to: number): Buffer =>
      Buffer.concat(
        Array.from({ length: to - from }, (_, index) => headersFrame(2 * (from + index) + 1, block, "body follows")),
      );
    await expect.poll(() => connection.arrived.some(({ type }) => type === TYPE.settings)).toBe(true);
    const { payload } = connection.arrived.find(({ type }) => type === TYPE.settings)!;
    const values = new Map(
      Array.from({ length: payload.length / 6 }, (_, at) => [
        payload.readUInt16BE(6 * at),
        payload.readUInt32BE(6 * at + 2),
      ]),
    );
    expect(values.get(SETTINGS_MAX_CONCURRENT_STREAMS)).toBe(100);
    connection.write(open(0, 100));
    expect(connection.closed).toBe(false);
    connection.write(open(100, 101));
    await connection.end;
  });
});

describe("500 calls at once on a new connection are all in flight", () => {
  it.each([
    ["of grpc-js", callWithGrpcJs],
    ["of connect-node", callWithConnect],
  ])("%s", async (_name, call) => {
    expect(await call(product.grpcPort)).toBe(CALLS);
  });

  it("of a front", async () => {
    const one = async (): Promise<number> => {
      const response = await fetch(`${front.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${product.firstKey}`, "content-type": "application/json" },
        body: BODY,
      });
      return response.status;
    };
    const statuses = await Promise.all(Array.from({ length: CALLS }, one));
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});
