import { type IncomingMessage, request } from "node:http";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

/** More than the kernel takes on loopback before anybody reads. */
const TEXT = "a bridge ".repeat(2_500_000);
const DEADLINE_MS = 4_000;

let upstream: Upstream;
let product: Product;
beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, TEXT));
  product = await startProduct({ config: { ...localModel(upstream.url), limits: UNLIMITED } });
});
afterAll(async () => {
  await product.stop();
  await upstream.close();
});

const conversation = { model: "local/test", messages: [{ role: "user", content: "hi" }] };

it.each([
  [
    "as JSON",
    { path: "/v1/chat/completions", header: "x-request-timeout-ms", body: conversation },
    (json: string) => (JSON.parse(json) as { choices: { message: { content: string } }[] }).choices[0]!.message.content,
  ],
  [
    "over Connect",
    {
      path: "/parley.v1.CompletionService/Create",
      header: "connect-timeout-ms",
      body: { ...conversation, messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }] },
    },
    (json: string) =>
      (JSON.parse(json) as { choices: { message: { parts: { text: string }[] } }[] }).choices[0]!.message.parts[0]!
        .text,
  ],
])(
  "a large answer %s that was complete in time is read to its end after the deadline",
  async (_, { path, header, body }, contentOf) => {
    const asking = request(product.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${product.firstKey}`,
        "content-type": "application/json",
        [header]: String(DEADLINE_MS),
      },
    }).end(JSON.stringify(body));
    const beganMs = performance.now();
    const [answer] = (await once(asking, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    expect(performance.now() - beganMs).toBeLessThan(DEADLINE_MS);
    await setTimeout(DEADLINE_MS + 200);
    expect(contentOf(await text(answer)) === TEXT).toBe(true);
  },
);
