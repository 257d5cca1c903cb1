import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { mutations } from "./support/mutations.ts";
import { RawConnection, rawRequest } from "./support/raw-http.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

const CHAT = "POST /v1/chat/completions";
const BODY = { model: "local/test", messages: [{ role: "user", content: "hi" }] };

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hi"));
  product = await startProduct({ config: localModel(upstream.url) });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

/** Requests that are served, of each kind. */
function validRequests(): Buffer[] {
  const auth = `authorization: Bearer ${product.firstKey}`;
  const headers = ["host: parley.example", "content-type: application/json", auth, "connection: close"];
  const more = { stream: true, stop: ["a"], temperature: 1 };
  return [
    rawRequest(CHAT, headers, JSON.stringify(BODY)),
    rawRequest(CHAT, headers, JSON.stringify({ ...BODY, ...more })),
    rawRequest("GET /v1/models/local%2Ftest", ["host: parley.example", auth, "connection: close"]),
    rawRequest("POST /parley.v1.CompletionService/Create", headers, JSON.stringify({ model: "local/test" })),
  ];
}

/** How many requests are under way at once. */
const CALLERS = 16;

describe("two thousand requests with random damage", () => {
  it("are each refused by the table or served, and the product lives", { timeout: 60_000 }, async () => {
    const answers: { status: number; text: string }[] = [];
    const queue = mutations(validRequests(), { count: 2000, seed: 20_261_121 });
    const call = async (): Promise<void> => {
      // The connection is half closed after the request: what is missing of it never comes.
      for (const bytes of queue) answers.push(await new RawConnection(product.httpPort).write(bytes).finish());
    };
    await Promise.all(Array.from({ length: CALLERS }, call));

    expect(answers).toHaveLength(2000);
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].filter((status) => status >= 500)).toEqual([]);
    expect([...statuses]).toEqual(expect.arrayContaining([200, 400, 401, 404]));
    expect(answers.filter(({ text }) => /node:internal|\.ts:\d+|node_modules|^ +at /m.test(text))).toEqual([]);
    expect(product.output.stderr).not.toContain('"outcome":"internal"');

    const [valid] = validRequests();
    expect(await new RawConnection(product.httpPort).write(valid!).response()).toMatchObject({ status: 200 });
  });
});
