import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answerJson, beginStream, startUpstream, type Upstream } from "./support/upstream.ts";
import { postJson } from "../support/post-json.ts";

/* Pictures that the dialect `openai-responses` makes with a tool, whose tokens do not obey `max_output_tokens`. */

const BUDGET_MICRO_USD = 1_000_000;
const IMAGE_OUTPUT = 40;
/** A landscape of high quality, and what the largest picture costs. */
const PICTURE_MICRO_USD = 6_208 * IMAGE_OUTPUT;
const LARGEST_MICRO_USD = 24_019 * IMAGE_OUTPUT;
const ITEM = { id: "ig_1", type: "image_generation_call", status: "completed", result: "iVBORw0KGgo=" };
const ANSWER = {
  status: "completed",
  output: [ITEM],
  usage: { input_tokens: 50, output_tokens: 14, total_tokens: 64 },
  tool_usage: { image_gen: { input_tokens: 0, output_tokens: 6_208, total_tokens: 6_208 } },
};

let upstream: Upstream;
let gateway: TestGateway;
const keys: string[] = [];

beforeAll(async () => {
  // Makes a picture for each request; a stream never comes to its count.
  upstream = await startUpstream(({ body, response }) => {
    if ((JSON.parse(body) as { stream?: boolean }).stream !== true) return answerJson(response, 200, ANSWER);
    beginStream(response);
    writeEvent(response, { type: "response.output_item.done", output_index: 0, item: ITEM });
  });
  gateway = await startTestGateway({
    config: {
      simulator: { enabled: false },
      timeouts: { settle_ms: 1 },
      breaker: { failures: 1000 },
      providers: {
        r: { dialect: "openai-responses", base_url: `${upstream.url}/v1`, allow_private: true, api_keys: ["k"] },
      },
      models: {
        painter: {
          provider: "r",
          upstream_model: "gpt-any",
          modalities: { input: ["text"], output: ["text", "image"] },
          price: { input: 1.25, output: 10, image_output: IMAGE_OUTPUT },
        },
      },
    },
    prepareKeys: async (context) => {
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: BUDGET_MICRO_USD };
      for (const name of ["whole", "leaves"]) keys.push((await createKey(context, { name, limits })).secret);
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function writeEvent(response: ServerResponse, event: object): void {
  response.write(`data: ${JSON.stringify(event)}\n\n`);
}

/** Asks for a picture; a caller of a stream leaves when it has one. */
async function draw(key: string, stream: boolean): Promise<number> {
  const leaving = new AbortController();
  const response = await postJson(
    `http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`,
    key,
    {
      model: "painter",
      modalities: ["text", "image"],
      max_tokens: 16,
      stream,
      messages: [{ role: "user", content: "Draw." }],
    },
    { signal: leaving.signal },
  );
  let text = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (stream && text.includes("base64")) break;
  }
  leaving.abort();
  return response.status;
}

describe.each([
  ["in whole answers, which are counted", 0, false, PICTURE_MICRO_USD],
  ["to callers that leave when they have one", 1, true, LARGEST_MICRO_USD],
] as const)("requests at once on a small budget get pictures %s", (_, at, stream, bookedMicroUsd) => {
  it("that the budget pays for, and those of one more request at most", async () => {
    const key = keys[at]!;
    const asked = upstream.exchanges.length;
    let statuses = [200];
    for (let round = 0; round < 8 && statuses.includes(200); round++)
      statuses = await Promise.all(Array.from({ length: 16 }, () => draw(key, stream)));
    expect(new Set(statuses)).toEqual(new Set([429]));
    // Holds of callers that have left are released after their answer.
    await expect.poll(async () => (await gateway.readiness()).active_calls, { timeout: 10_000 }).toBe(0);
    const exchanges = upstream.exchanges.slice(asked);
    expect(exchanges.length).toBeGreaterThan(0);
    expect(exchanges.length * bookedMicroUsd).toBeLessThanOrEqual(BUDGET_MICRO_USD + LARGEST_MICRO_USD);
    for (const { body } of exchanges) expect(JSON.parse(body)).toMatchObject({ max_tool_calls: 1 });
  });
});
