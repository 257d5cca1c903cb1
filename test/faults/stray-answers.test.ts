import { createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Agent } from "undici";
import { expect, it, onTestFinished } from "vitest";
import { createDice, type Dice } from "../../src/simulator/dice.ts";
import { localModel } from "../product/support/upstream.ts";
import { startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "../support/scale.ts";

/*
 * The product as a process and a provider that also sends unsolicited responses. The answer repeats the unique text of
 * its request; an unsolicited one repeats an earlier request, or a text of no request. No caller may receive another
 * request's answer.
 */

const REQUESTS = scale(20_000, 1_000_000);
/** Simultaneous callers, and the number of requests per unsolicited response. */
const CALLERS = 96;
const STRAY_IN = 20;
/** Longest delay of a response, and of an unsolicited response after it. */
const THINK_MS = 25;
const LATE_MS = 30;
/** After this time an unsolicited response is not sent: a connection may be reused 50 ms after a response. */
const TOO_LATE_MS = 45;

const INJECTED = "injected";

function answerOf(text: string, head = "200 OK"): string {
  const message = { role: "assistant", content: text };
  const body = JSON.stringify({
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
  return `HTTP/1.1 ${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** A provider that sends an unsolicited response after some of its responses. */
async function startStraying(dice: Dice) {
  const counts = { stray: 0, connections: 0 };
  let earlier = "none";
  const answer = async (socket: Socket, request: string): Promise<void> => {
    const text = /text-\d+-\w+/.exec(request)![0];
    const thinkMs = dice.roll(THINK_MS);
    const kind = dice.roll(STRAY_IN) === 0 ? dice.roll(6) : undefined;
    const lateMs = dice.roll(LATE_MS);
    const stray = answerOf(dice.roll(2) === 0 ? earlier : INJECTED);
    earlier = text;
    await delay(thinkMs);
    const write = (bytes: string): void => void (socket.destroyed || socket.write(bytes));
    if (kind === undefined) return write(answerOf(text));
    const denied = ["204 No Content", "205 Reset Content", "304 Not Modified"][kind];
    if (denied !== undefined) write(`HTTP/1.1 ${denied}\r\ncontent-length: ${stray.length}\r\n\r\n`);
    else if (kind === 3) write(answerOf("too much", "429 Too Many Requests"));
    else if (kind === 4) write(`HTTP/1.1 102 Processing\r\n\r\n${answerOf(text)}`);
    else write(answerOf(text));
    const answeredMs = performance.now();
    await delay(lateMs);
    if (performance.now() - answeredMs > TOO_LATE_MS) return;
    counts.stray += 1;
    write(stray);
  };
  const server = createServer((socket) => {
    counts.connections += 1;
    socket.setNoDelay(true).on("error", () => {});
    let received = "";
    socket.setEncoding("latin1").on("data", (bytes: string) => {
      received += bytes;
      const end = received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const size = end + 4 + Number(/content-length: (\d+)/.exec(received)![1]);
      if (received.length < size) return;
      const request = received.slice(0, size);
      received = received.slice(size);
      void answer(socket, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts };
}

it(
  "unsolicited responses of a provider reach no other caller, whenever they arrive",
  async () => {
    const dice = createDice(`stray answers ${seed()}`);
    const upstream = await startStraying(dice);
    const config = {
      ...localModel(upstream.url),
      limits: UNLIMITED,
      breaker: { failures: 1000, open_ms: 1, max_open_ms: 1 },
    };
    const product = await startProduct({ config });
    onTestFinished(() => product.stop());
    const dispatcher = new Agent({ connections: CALLERS });
    onTestFinished(() => dispatcher.destroy());
    const counts = { own: 0, failed: 0, foreign: 0 };
    const call = async (index: number): Promise<void> => {
      const text = `text-${index}-${dice.roll(1e9).toString(36)}`;
      const body = JSON.stringify({ model: "local/test", messages: [{ role: "user", content: text }] });
      const { statusCode, body: answer } = await dispatcher.request({
        origin: product.url,
        path: "/v1/chat/completions",
        method: "POST",
        headers: { authorization: `Bearer ${product.firstKey}`, "content-type": "application/json" },
        body,
      });
      const read = await answer.text();
      if (statusCode !== 200) counts.failed += 1;
      else if ((JSON.parse(read) as Reply).choices[0].message.content === text) counts.own += 1;
      else counts.foreign += 1;
    };
    const indexes = Array.from({ length: REQUESTS }, (_, index) => index).values();
    await Promise.all(
      Array.from({ length: CALLERS }, async () => {
        for (const index of indexes) await call(index);
      }),
    );
    const asked = counts.own + counts.failed + counts.foreign;
    console.log(JSON.stringify({ ...counts, ...upstream.counts }));
    expect(counts.own).toBeGreaterThan(REQUESTS * 0.9);
    figure({ name: "requests to a provider with unsolicited responses", value: asked, unit: "", atLeast: REQUESTS });
    figure({ name: "unsolicited responses", value: upstream.counts.stray, unit: "", atLeast: REQUESTS / STRAY_IN / 2 });
    figure({ name: "responses to the wrong caller", value: counts.foreign, unit: "", atMost: 0 });
  },
  timeLimit(600, 2_400),
);

interface Reply {
  readonly choices: readonly [{ readonly message: { readonly content: string } }];
}
