import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startUpstream, type Upstream } from "./support/upstream.ts";
import { postJson } from "../support/post-json.ts";

/** Two megabytes that are not the same anywhere. */
const pictures = [1, 2, 3].map((seed) =>
  Buffer.from(Uint32Array.from({ length: 500_000 }, (_, at) => at * 2_654_435_761 + seed).buffer),
);

let upstream: Upstream;
let gateway: TestGateway;

beforeAll(async () => {
  // The prompt says which picture is wanted, and how it is written.
  upstream = await startUpstream(({ body, response }) => {
    const { contents } = JSON.parse(body) as { contents: { parts: { text: string }[] }[] };
    const [index, encoding] = contents[0]!.parts[0]!.text.split(" ");
    const data = pictures[Number(index)]!.toString(encoding as BufferEncoding);
    const parts = [{ text: "Here:" }, { inlineData: { mimeType: "image/png", data } }];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] }));
  });
  const painter = {
    provider: "local",
    upstream_model: "painter",
    context_window: 100_000,
    max_output_tokens: 10_000,
    price: { input: 1, output: 2 },
    modalities: { input: ["text"], output: ["text", "image"] },
  };
  gateway = await startTestGateway({
    config: {
      simulator: { enabled: false },
      providers: { local: { dialect: "gemini", base_url: upstream.url, allow_private: true, api_keys: ["k"] } },
      models: { painter },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

async function ask(path: string, body: object): Promise<unknown> {
  const response = await postJson(`http://127.0.0.1:${gateway.httpPort}${path}`, gateway.key, {
    model: "painter",
    ...body,
  });
  return response.json();
}

const askOpenAi = (prompt: string): Promise<unknown> =>
  ask("/v1/chat/completions", { messages: [{ role: "user", content: prompt }] });
const askConnect = (prompt: string): Promise<unknown> =>
  ask("/parley.v1.CompletionService/Create", { messages: [{ role: "ROLE_USER", parts: [{ text: prompt }] }] });

describe.each(["base64", "base64url"])("a picture of two megabytes in %s", (encoding) => {
  it("reaches many callers at once, each with its own, in the OpenAI format", async () => {
    const wanted = Array.from({ length: 12 }, (_, at) => at % pictures.length);
    const answers = await Promise.all(wanted.map((index) => askOpenAi(`${index} ${encoding}`)));
    wanted.forEach((index, at) => {
      const url = `data:image/png;base64,${pictures[index]!.toString("base64")}`;
      const content = [
        { type: "text", text: "Here:" },
        { type: "image_url", image_url: { url } },
      ];
      expect(answers[at]).toMatchObject({ choices: [{ message: { content } }] });
    });
  });

  it("reaches a caller of the service as its bytes", async () => {
    const data = pictures[1]!.toString("base64");
    const parts = [{ text: "Here:" }, { image: { data, mediaType: "image/png" } }];
    expect(await askConnect(`1 ${encoding}`)).toMatchObject({ choices: [{ message: { parts } }] });
  });
});
