import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callBlock, flood, FLOODS, httpBlock } from "./hostile/floods.ts";
import {
  frame,
  grpcHeaders,
  headerBlock,
  headersFrame,
  PREFACE,
  RawHttp2,
  resetStream,
  settings,
  TYPE,
} from "./hostile/raw-http2.ts";
import { CREATE, MIB, startTarget, type Target } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

/** Longest duration of a flood. */
const CLOSED_MS = 1000;
/** Repetitions. The fastest counts, because load of other programs may delay any of them. */
const TRIES = 4;

let target: Target;
const closedMs = new Map<string, number>();
let mostBytes = 0;

beforeAll(async () => {
  // The same guards as on the port of gRPC, and those of HTTP.
  target = await startTarget(undefined, { isShared: true });
});

afterAll(async () => {
  await target.stop();
});

describe.each([
  ["of gRPC that reads the server's frames", { reads: true, blockOf: callBlock }],
  ["of gRPC that reads nothing", { reads: false, blockOf: callBlock }],
  ["of HTTP that reads the server's frames", { reads: true, blockOf: httpBlock }],
  ["of HTTP that reads nothing", { reads: false, blockOf: httpBlock }],
])("an HTTP/2 client %s", (kind, client) => {
  it.each(FLOODS)("is disconnected when it sends $name", { timeout: timeLimit(60, 120) }, async (attack) => {
    const before = target.product.rssBytes();
    let bestMs = Infinity;
    const tries = scale(TRIES, 2 * TRIES);
    for (let turn = 0; turn < tries && bestMs > CLOSED_MS; turn++) {
      bestMs = Math.min(bestMs, await flood(target, attack, client));
    }
    closedMs.set(`${attack.name}, ${kind}`, Math.round(bestMs));
    mostBytes = Math.max(mostBytes, target.product.rssBytes() - before);
    expect(bestMs).toBeLessThan(CLOSED_MS);
  });
});

describe("all HTTP/2 floods together", () => {
  it("were disconnected within a second, without upstream calls", () => {
    const slowest = Math.max(...closedMs.values());
    expect(closedMs.size).toBe(4 * FLOODS.length);
    figure({
      name: "HTTP/2 floods of gRPC and HTTP, each read and unread",
      value: closedMs.size,
      unit: "",
      atLeast: 100,
    });
    figure({ name: "HTTP/2 floods: the slowest connection closed", value: slowest, unit: "ms", atMost: CLOSED_MS });
    figure({ name: "HTTP/2 floods: upstream calls caused", value: target.heard(), unit: "", atMost: 0 });
    figure({ name: "HTTP/2 floods: memory", value: Math.round(mostBytes / MIB), unit: "MiB", atMost: 128 });
  });

  it("left the product serving without faults", async () => {
    await target.goodRequest();
    expect(target.product.output.stderr).not.toMatch(/"level":"(fatal|error)"|Warning/);
  });
});

describe("calls that are reset in the write that begins their connection", () => {
  it.each([
    ["of an unknown method", grpcHeaders("/unknown.Service/Method")],
    ["of another content type", grpcHeaders(CREATE, { "content-type": "APPLICATION/GRPC" })],
    ["of a known method", grpcHeaders(CREATE)],
  ])("%s, do not end the process", async (_, headers) => {
    const block = headerBlock([...new Map(headers)]);
    const calls = [1, 3, 5].flatMap((stream) => [headersFrame(stream, block, "body follows"), resetStream(stream)]);
    const connection = new RawHttp2(target.dialGrpc());
    connection.write(Buffer.concat([PREFACE, settings(), ...calls, frame({ type: TYPE.ping }, Buffer.alloc(8))]));
    await expect.poll(() => connection.arrived.some(({ type }) => type === TYPE.ping)).toBe(true);
    connection.close();
    await expect(target.goodRequest()).resolves.toBeGreaterThan(0);
  });
});
