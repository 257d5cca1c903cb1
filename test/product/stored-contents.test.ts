import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KeyService } from "../../gen/parley/console/v1/key_pb.js";
import { PlaygroundService } from "../../gen/parley/console/v1/playground_pb.js";
import { RequestService, type StoredContent } from "../../gen/parley/console/v1/request_pb.js";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { type Output, type Product, runProduct, startProduct } from "../support/product.ts";
import { answerJson, answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";
import { postJson } from "../support/post-json.ts";
import { signUpFirst } from "../support/signed-up.ts";

const MODEL = "local/test";
const PROMPT = "How old is the lighthouse?";
const ANSWER = "A hundred years.";

let upstream: Upstream;
let product: Product;
let other: Product;
let log: ReturnType<typeof createClient<typeof RequestService>>;
let playground: ReturnType<typeof createClient<typeof PlaygroundService>>;
const keys = {} as Record<"storing" | "plain", { readonly id: string; readonly secret: string }>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) =>
    exchange.body.includes("fail please")
      ? answerJson(exchange.response, 400, { error: { message: "No." } })
      : answerText(exchange, ANSWER),
  );
  product = await startProduct({ config: { ...localModel(upstream.url), content: { store_days: 1 } } });
  const transport = await signUpFirst(product.url);
  const keyService = createClient(KeyService, transport);
  log = createClient(RequestService, transport);
  playground = createClient(PlaygroundService, transport);
  for (const [name, storeContent] of [
    ["storing", true],
    ["plain", false],
  ] as const) {
    const { key, secret } = await keyService.create({ name, storeContent });
    keys[name] = { id: key!.id, secret };
  }
});

afterAll(async () => {
  for (const each of [product, other]) await each?.stop();
  await upstream?.close();
});

const textsOf = (parts: readonly Part[] = []): unknown[] => parts.map(({ kind }) => kind.value);
const shown = ({ request, choices }: StoredContent) => ({
  asked: request?.messages.map(({ role, parts }) => [role, ...textsOf(parts)]),
  answered: choices.map(({ message }) => textsOf(message?.parts)),
});
const SHOWN = { asked: [[Role.USER, PROMPT]], answered: [[ANSWER]] };

interface Sent {
  readonly path: string;
  readonly body: object;
}

const chat = (content = PROMPT): object => ({ model: MODEL, messages: [{ role: "user", content }] });
const GEMINI = { contents: [{ role: "user", parts: [{ text: PROMPT }] }] };

const CASES: Readonly<Record<string, Sent>> = {
  "chat completions": { path: "/v1/chat/completions", body: chat() },
  "a stream of chat completions": { path: "/v1/chat/completions", body: { ...chat(), stream: true } },
  messages: { path: "/v1/messages", body: { ...chat(), max_tokens: 9 } },
  "a stream of messages": { path: "/v1/messages", body: { ...chat(), max_tokens: 9, stream: true } },
  responses: { path: "/v1/responses", body: { model: MODEL, input: PROMPT, store: false } },
  gemini: { path: `/v1beta/models/${MODEL}:generateContent`, body: GEMINI },
};

async function post(
  { path, body }: Sent,
  { requestId, secret }: { readonly requestId: string; readonly secret: string },
) {
  const response = await postJson(product.url + path, secret, body, { headers: { "x-request-id": requestId } });
  return { status: response.status, text: await response.text() };
}

/** What is stored of a request, once its entry is there. */
async function contentOf(id: string): Promise<StoredContent | undefined> {
  await expect.poll(async () => (await log.get({ id })).request?.id, { timeout: 20_000 }).toBeDefined();
  return (await log.getContent({ id })).content;
}

async function storedContent(id: string): Promise<StoredContent> {
  let found: StoredContent | undefined;
  await expect.poll(async () => (found = await contentOf(id)), { timeout: 20_000 }).toBeDefined();
  return found!;
}

describe("prompts and answers of a key that stores them", () => {
  it.each(Object.keys(CASES))("are stored of %s", async (of) => {
    const requestId = `req_${of.replaceAll(" ", "_")}`;
    const { status, text } = await post(CASES[of]!, { requestId, secret: keys.storing.secret });
    expect([status, text]).toEqual([200, expect.stringContaining(ANSWER)]);
    expect(shown(await storedContent(requestId))).toEqual(SHOWN);
  });

  it("are stored of gRPC, whole and streamed, and of the playground", async () => {
    const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` });
    const grpc = createClient(CompletionService, transport);
    const request = {
      model: MODEL,
      messages: [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: PROMPT } }] }],
    };
    const headers = { authorization: `Bearer ${keys.storing.secret}` };
    const { id } = await grpc.create(request, { headers });
    const ids = [id];
    for await (const { event } of grpc.stream(request, { headers }))
      if (event.case === "start") ids.push(event.value.id);
    for await (const { chunk } of playground.stream({ keyId: keys.storing.id, completion: request }))
      if (chunk?.event.case === "start") ids.push(chunk.event.value.id);
    expect(ids).toHaveLength(3);
    for (const each of ids) expect(shown(await storedContent(each))).toEqual(SHOWN);
  });

  it("are those of the prompt alone where the provider refused it", async () => {
    const failing = { path: "/v1/chat/completions", body: chat("fail please") };
    expect((await post(failing, { requestId: "req_failing", secret: keys.storing.secret })).status).toBe(400);
    expect(shown(await storedContent("req_failing"))).toEqual({ asked: [[Role.USER, "fail please"]], answered: [] });
  });

  it("are not in the database's files in plain text, and counted", async () => {
    const folder = join(product.home, "data");
    for (const name of readdirSync(folder))
      for (const text of [PROMPT, ANSWER, "lighthouse"])
        expect([name, text, readFileSync(join(folder, name)).includes(text)]).toEqual([name, text, false]);
    const metrics = await (await fetch(`${product.operationsUrl}/metrics`)).text();
    const stored = Number(/parley_contents_total\{outcome="stored"\} (\d+)/.exec(metrics)?.[1]);
    expect(stored).toBe(Object.keys(CASES).length + 4);
    expect(metrics).toContain('parley_contents_total{outcome="dropped"} 0');
  });
});

it("nothing is stored of another key", async () => {
  for (const of of ["chat completions", "a stream of messages"]) {
    const requestId = `req_plain_${of.replaceAll(" ", "_")}`;
    expect((await post(CASES[of]!, { requestId, secret: keys.plain.secret })).status).toBe(200);
    expect(await contentOf(requestId)).toBeUndefined();
  }
});

it("keys are made at the command line, where the setting is there", async () => {
  const create = async (flag: string, { home }: Product): Promise<Output> => {
    const { output, ending } = runProduct(["keys", "create", "--name", "cli", "--store-content", flag, "--json"], {
      home,
    });
    await ending;
    return output;
  };
  expect(JSON.parse((await create("yes", product)).stdout)).toMatchObject({ store_content: true });
  expect((await create("maybe", product)).stderr).toContain("--store-content is yes or no");
  other = await startProduct({ config: localModel(upstream.url) });
  expect((await create("yes", other)).stderr).toContain("content.store_days");
});
