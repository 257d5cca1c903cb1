import { mkdirSync, rmSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { openStore } from "../../src/store/store.ts";
import { startUpstream, type Upstream } from "../product/support/upstream.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { MIB } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "./support/scale.ts";

const CALLS = 64;
const PICTURE = Buffer.alloc(25 * MIB * 0.75, 7).toString("base64");
/** Pictures that are awaited; all of them take minutes of a busy machine. */
const AWAITED = scale(6, CALLS);

/** An event of the dialect `gemini` with this part. */
function event(part: object): Buffer {
  const content = { role: "model", parts: [part] };
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 };
  const answer = { candidates: [{ content, index: 0, finishReason: "STOP" }], usageMetadata };
  return Buffer.from(`data: ${JSON.stringify(answer)}\n\n`);
}

const LARGE = event({ inlineData: { mimeType: "image/png", data: PICTURE } });
const SMALL = event({ text: "hi" });

let home: string;
let upstream: Upstream;
let product: Product;
let keys: { readonly own: string; readonly other: string };

beforeEach(async () => {
  home = makeHome();
  mkdirSync(join(home, "data"));
  const store = await openStore({ dataDir: join(home, "data"), databaseUrl: undefined });
  const make = async (name: string): Promise<string> =>
    (await createKey({ store: store.keys, clock: systemClock }, { name, limits: NO_LIMITS })).secret;
  keys = { own: await make("own"), other: await make("other") };
  await store.close();
  upstream = await startUpstream(({ response, body }) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).end(body.includes("picture") ? LARGE : SMALL);
  });
  product = await startProduct({
    home,
    env: { NODE_OPTIONS: "--max-old-space-size=512" },
    config: {
      limits: UNLIMITED,
      providers: {
        local: { dialect: "gemini", base_url: upstream.url, allow_private: true, api_keys: ["credential"] },
      },
      models: {
        "local/test": {
          provider: "local",
          upstream_model: "test",
          context_window: 100_000,
          max_output_tokens: 10_000,
          modalities: { input: ["text"], output: ["text", "image"] },
          capabilities: { image_options: true },
          price: { input: 1, output: 2, image_output: 3 },
        },
      },
    },
  });
}, 60_000);

afterEach(async () => {
  await product.stop();
  await upstream.close();
  rmSync(home, { recursive: true, force: true });
});

/** A call on its own connection, which counts what it reads. */
interface Call {
  readonly bytes: () => number;
  /** The status line; empty before it has come. */
  readonly status: () => string;
  readonly end: Promise<unknown>;
  readonly leave: () => void;
}

function ask(key: string, word: "picture" | "text"): Call {
  const body = JSON.stringify({
    model: "local/test",
    stream: true,
    modalities: ["text", "image"],
    messages: [{ role: "user", content: `a ${word}` }],
  });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${key}\r\n`;
  const socket = connect(product.httpPort, "127.0.0.1");
  socket.write(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  let [bytes, status] = [0, ""];
  socket.on("data", (data) => {
    if (bytes === 0) status = data.toString("latin1", 0, 15);
    bytes += data.length;
  });
  socket.on("error", () => undefined);
  return { bytes: () => bytes, status: () => status, end: once(socket, "close"), leave: () => socket.destroy() };
}

describe("large pictures of one key, all at once", () => {
  it("leave the process its memory, and others their answers", { timeout: timeLimit(90, 600) }, async () => {
    const mine = Array.from({ length: CALLS }, () => ask(keys.own, "picture"));
    const whole = (): number => mine.filter(({ bytes }) => bytes() > PICTURE.length).length;
    const othersMs: number[] = [];
    let mostBytes = 0;
    const ended = new AbortController();
    void product.ending.then(() => ended.abort());
    while (whole() < AWAITED && !ended.signal.aborted) {
      const begunMs = performance.now();
      const other = ask(keys.other, "text");
      await other.end;
      if (ended.signal.aborted || product.output.stderr.includes("FATAL")) break;
      expect(other.status()).toBe("HTTP/1.1 200 OK");
      othersMs.push(performance.now() - begunMs);
      mostBytes = Math.max(mostBytes, product.rssBytes());
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(/^FATAL.*$/m.exec(product.output.stderr)?.[0]).toBeUndefined();
    expect(ended.signal.aborted).toBe(false);
    const latest = othersMs.toSorted((one, other) => one - other);
    const at = (share: number): number => Math.round(latest[Math.floor((latest.length - 1) * share)]!);
    console.log(`${othersMs.length} small answers of another key: median ${at(0.5)} ms`);
    figure({ name: "large pictures: memory", value: Math.round(mostBytes / MIB), unit: "MiB", atMost: 700 });
    figure({ name: "large pictures: p99 of another key", value: at(0.99), unit: "ms", atMost: 5_000 });

    // What callers leave is free for others.
    for (const { leave } of mine) leave();
    const last = ask(keys.other, "picture");
    await last.end;
    expect(last.bytes()).toBeGreaterThan(PICTURE.length);
  });
});
