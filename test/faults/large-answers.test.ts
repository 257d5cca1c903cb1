import { mkdirSync, rmSync } from "node:fs";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
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
import { scale, timeLimit } from "../support/scale.ts";

const CALLS = 64;
const PICTURE = Buffer.alloc(25 * MIB * 0.75, 7).toString("base64");
/** Pictures that are awaited; all of them take minutes of a busy machine. */
const AWAITED = scale(6, CALLS);

/** An answer of the dialect `gemini` with this part. */
function answer(part: object): string {
  const content = { role: "model", parts: [part] };
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 };
  return JSON.stringify({ candidates: [{ content, index: 0, finishReason: "STOP" }], usageMetadata });
}

const event = (part: object): Buffer => Buffer.from(`data: ${answer(part)}\n\n`);

const LARGE = event({ inlineData: { mimeType: "image/png", data: PICTURE } });
const SMALL = event({ text: "hi" });
const WHOLE = Buffer.from(answer({ text: "A".repeat(60 * MIB) }));

/** What the provider does, by a word of the request. */
const ANSWERS: Readonly<Record<Word, (response: ServerResponse) => void>> = {
  picture: (response) => response.end(LARGE),
  text: (response) => response.end(SMALL),
  stall: (response) => response.write(LARGE.subarray(0, -10)),
  whole: (response) => response.end(WHOLE),
};
type Word = "picture" | "text" | "stall" | "whole";
const WORDS = ["picture", "text", "stall", "whole"] as const;

const ACCOUNTS = ["acct_a", "acct_b", "acct_c", "acct_d"];
const KEYS_OF_EACH = 4;

let home: string;
let upstream: Upstream;
let product: Product;
/** `many`: of several accounts. */
let keys: { readonly own: string; readonly other: string; readonly many: readonly string[] };

const providerAt = (url: string): object => ({
  dialect: "gemini",
  base_url: url,
  allow_private: true,
  api_keys: ["credential"],
});

const modelOf = (provider: string): object => ({
  provider,
  upstream_model: "test",
  context_window: 100_000,
  max_output_tokens: 10_000,
  modalities: { input: ["text"], output: ["text", "image"] },
  capabilities: { image_options: true },
  price: { input: 1, output: 2, image_output: 3 },
});

beforeEach(async () => {
  home = makeHome();
  mkdirSync(join(home, "data"));
  const store = await openStore({ dataDir: join(home, "data"), databaseUrl: undefined });
  const make = async (name: string, accountId?: string): Promise<string> => {
    const request = { name, limits: NO_LIMITS, ...(accountId !== undefined && { accountId }) };
    return (await createKey({ store: store.keys, clock: systemClock }, request)).secret;
  };
  const many: string[] = [];
  for (const id of ACCOUNTS) {
    const facts = {
      kind: "person",
      role: "developer",
      passwordHash: undefined,
      disabledAtMs: undefined,
      limits: NO_LIMITS,
    } as const;
    await store.accounts.insert({ ...facts, id, name: id, email: `${id}@example.com`, createdAtMs: Date.now() });
    for (let count = 1; count <= KEYS_OF_EACH; count++) many.push(await make(`${id} ${count}`, id));
  }
  keys = { own: await make("own"), other: await make("other"), many };
  await store.close();
  upstream = await startUpstream(({ response, body }) => {
    const word = WORDS.find((each) => body.includes(`a ${each}`))!;
    const type = word === "whole" ? "application/json" : "text/event-stream";
    ANSWERS[word](response.writeHead(200, { "content-type": type }));
  });
  product = await startProduct({
    home,
    env: { NODE_OPTIONS: "--max-old-space-size=512" },
    config: {
      limits: UNLIMITED,
      providers: { local: providerAt(upstream.url), other: providerAt(upstream.url) },
      models: { "local/test": modelOf("local"), "other/test": modelOf("other") },
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

/** Asks another key's picture; returns the time in ms that it took. */
async function pictureMs(model: string): Promise<number> {
  const begunMs = performance.now();
  const { end, bytes } = ask(keys.other, "picture", { model });
  await end;
  expect(bytes()).toBeGreaterThan(PICTURE.length);
  return Math.round(performance.now() - begunMs);
}

function ask(
  key: string,
  word: Word,
  { model = "local/test", reads = true }: { readonly model?: string; readonly reads?: boolean } = {},
): Call {
  const body = JSON.stringify({
    model,
    ...(word !== "whole" && { stream: true }),
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
    if (!reads) socket.pause();
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
    // Of some thirty answers one or two wait for the machine's other work.
    figure({ name: "large pictures: p90 of another key", value: at(0.9), unit: "ms", atMost: 5_000 });

    // What callers leave is free for others.
    for (const { leave } of mine) leave();
    const last = ask(keys.other, "picture");
    await last.end;
    expect(last.bytes()).toBeGreaterThan(PICTURE.length);
  });
});

describe("large answers", () => {
  it("of a provider that stalls end for others", { timeout: timeLimit(120, 120) }, async () => {
    const stalled = keys.many.map((key) => ask(key, "stall"));
    await expect.poll(() => upstream.exchanges.length, { timeout: 20_000 }).toBe(stalled.length);
    const ofOther = await pictureMs("other/test");
    const ofSame = await pictureMs("local/test");
    for (const { leave } of stalled) leave();
    figure({ name: "stalled provider: picture of another", value: ofOther, unit: "ms", atMost: 30_000 });
    figure({ name: "stalled provider: picture of the same", value: ofSame, unit: "ms", atMost: 40_000 });
  });

  it(
    "that callers of many keys do not read leave the process its memory",
    { timeout: timeLimit(120, 120) },
    async () => {
      const unread = keys.many.map((key) => ask(key, "whole", { reads: false }));
      await expect.poll(() => upstream.exchanges.length, { timeout: 20_000 }).toBe(unread.length);
      let mostBytes = 0;
      const watch = setInterval(() => (mostBytes = Math.max(mostBytes, product.rssBytes())), 50);
      const ms = await pictureMs("other/test");
      clearInterval(watch);
      for (const { leave } of unread) leave();
      expect(/^FATAL.*$/m.exec(product.output.stderr)?.[0]).toBeUndefined();
      figure({ name: "unread whole answers: memory", value: Math.round(mostBytes / MIB), unit: "MiB", atMost: 800 });
      figure({ name: "unread whole answers: picture of another", value: ms, unit: "ms", atMost: 40_000 });
    },
  );
});
