import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DocumentSchemas, schemasOf } from "../support/document-schemas.ts";
import { type Product, startProduct } from "../support/product.ts";
import {
  answerJson,
  answerText,
  beginStream,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "./support/upstream.ts";
import { postChat, postJson } from "../support/post-json.ts";

let upstream: Upstream;
let product: Product;
let schemas: DocumentSchemas;
let documentText = "";

const REFUSAL = { error: { message: "no", type: "x" } };

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const { body, response } = exchange;
    const status = Number(/status (\d+)/.exec(body)?.[1]);
    if (status > 0) return answerJson(response, status, REFUSAL);
    if (body.includes("garbage")) return void response.end("garbage");
    if (body.includes("wait")) return undefined;
    if (!body.includes("break")) return answerText(exchange, "Hello there");
    beginStream(response);
    response.write(textEvent("Once upon"), () => response.destroy());
  });
  product = await startProduct({
    config: { ...localModel(upstream.url), breaker: { failures: 1000 }, retries: { base_ms: 1, cap_ms: 1 } },
  });
  const response = await fetch(`${product.url}/openapi.json`);
  documentText = await response.text();
  schemas = schemasOf(JSON.parse(documentText) as object, "strict");
});
afterAll(async () => {
  await product?.stop();
  await upstream?.close();
});

function ask(fields: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return postChat(
    product.url,
    product.firstKey,
    { model: "local/test", messages: [{ role: "user", content: "Hi" }], ...fields },
    { headers },
  );
}

const saying = (content: string) => ({ messages: [{ role: "user", content }] });

/** Holds an answer's status, headers and JSON body against what is documented of an operation. */
async function faultsOf(response: Response, path: string, method = "post"): Promise<string[]> {
  const operation = ["paths", path, method, "responses", String(response.status)];
  const { paths, components } = JSON.parse(documentText) as {
    paths: Record<string, Record<string, { responses: Record<string, { headers?: object }> }>>;
    components: { headers: object };
  };
  const documented = paths[path]?.[method]?.responses[String(response.status)];
  if (documented === undefined) return [`${response.status} is not documented`];
  const ours = [...response.headers.keys()].filter((name) => name in components.headers);
  const unknown = ours.filter((name) => !(name in (documented.headers ?? {})) && response.ok);
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  return [...unknown, ...schemas.at(...operation, "content", type, "schema")(await response.json())];
}

it("the document names the port on which this gateway serves gRPC", () => {
  expect(documentText).toContain(`http://127.0.0.1:${product.grpcPort}/parley.v1.CompletionService/Create`);
});

describe("the document of a running product", () => {
  it("is public, also for other origins, and answers 304 to a cached copy", async () => {
    const response = await fetch(`${product.url}/openapi.json`, { headers: { origin: "https://example.com" } });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "application/json",
      "access-control-allow-origin": "*",
      "cache-control": "public, no-cache",
      "x-content-type-options": "nosniff",
    });
    expect(await response.text()).toBe(documentText);
    const etag = response.headers.get("etag") ?? "";
    const again = await fetch(`${product.url}/openapi.json`, { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  it("accepts only GET and HEAD", async () => {
    const head = await fetch(`${product.url}/openapi.json`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(Buffer.byteLength(documentText))]);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const { status, headers } = await fetch(`${product.url}/openapi.json`, { method });
      expect([status, headers.get("allow")]).toEqual([404, "GET"]);
    }
  });

  it("makes no other path available without a key", async () => {
    for (const path of ["/openapi.yaml", "/openapi.json/", "/proto", "/proto/", "/proto/../package.json", "/proto/x"]) {
      expect((await fetch(product.url + path)).status, path).toBe(404);
    }
    expect((await fetch(`${product.url}/v1/models`)).status).toBe(401);
  });
});

describe("a response of the running product matches the document:", () => {
  it("a whole completion", async () => {
    const response = await ask({ frobnicate: 1 });
    expect(response.status).toBe(200);
    expect(await faultsOf(response, "/v1/chat/completions")).toEqual([]);
  });

  it("the report of an unknown field", async () => {
    const answer = (await (await ask({ frobnicate: 1 })).json()) as { parley: { omitted: string[] } };
    expect(answer.parley.omitted).toEqual(["frobnicate"]);
    const refused = await ask({ frobnicate: 1, parley: { strict: true } });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: "frobnicate" } }]);
  });

  it("every chunk of a stream", async () => {
    const response = await ask({ stream: true, stream_options: { include_usage: true } });
    const events = (await response.text()).split("\n\n").filter((event) => event !== "" && event !== "data: [DONE]");
    expect(events.length).toBeGreaterThan(2);
    const findFaults = schemas.at("components", "schemas", "ChatCompletionChunk");
    for (const event of events) expect(findFaults(JSON.parse(event.replace(/^data: /, "")))).toEqual([]);
  });

  it("the error that ends a stream", async () => {
    const response = await ask({ stream: true, ...saying("break") });
    const events = (await response.text()).trimEnd().split("\n\n");
    const last: unknown = JSON.parse((events.at(-1) ?? "").replace(/^data: /, ""));
    expect(last).toHaveProperty("error");
    expect(schemas.at("components", "schemas", "Error")(last)).toEqual([]);
  });

  it.each<[string, number, object, Record<string, string>]>([
    ["a field out of range", 400, { temperature: 3 }, {}],
    ["a provider's refusal", 400, saying("status 400"), {}],
    ["no key", 401, {}, { authorization: "" }],
    ["an unknown model", 404, { model: "nothing" }, {}],
    ["a provider's limit", 429, saying("status 429"), {}],
    ["an answer that cannot be read", 500, saying("garbage"), {}],
    ["a provider that refuses us", 500, saying("status 401"), {}],
    ["a provider that fails", 503, saying("status 503"), {}],
    ["a deadline", 503, saying("wait"), { "x-request-timeout-ms": "50" }],
  ])("the error for %s", async (_, status, fields, headers) => {
    const response = await ask(fields, headers);
    expect(response.status).toBe(status);
    expect(await faultsOf(response, "/v1/chat/completions")).toEqual([]);
  });

  it("the error for a body that is too large", async () => {
    const headers = {
      authorization: `Bearer ${product.firstKey}`,
      "content-type": "application/json",
      "content-length": 33 * 1024 * 1024,
    };
    // Refused by what it says of itself: nothing of it is sent.
    const call = request(`${product.url}/v1/chat/completions`, { method: "POST", headers });
    call.on("error", () => undefined).flushHeaders();
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    const response = new Response(Buffer.concat(await Array.fromAsync(answer)), {
      status: answer.statusCode ?? 0,
      headers: { "content-type": answer.headers["content-type"] ?? "" },
    });
    call.destroy();
    expect(response.status).toBe(413);
    expect(await faultsOf(response, "/v1/chat/completions")).toEqual([]);
  });

  it("the plan of a request", async () => {
    const plan = await postJson(`${product.url}/v1/route`, product.firstKey, {
      model: "local/test",
      ...saying("Hi"),
      seed: 1,
    });
    expect(plan.status).toBe(200);
    expect(await faultsOf(plan, "/v1/route")).toEqual([]);
  });

  it("models and health", async () => {
    const headers = { authorization: `Bearer ${product.firstKey}` };
    for (const [url, path] of [
      ["/v1/models", "/v1/models"],
      ["/v1/models/local%2Ftest", "/v1/models/{id}"],
      ["/v1/models/nothing", "/v1/models/{id}"],
      ["/healthz", "/healthz"],
      ["/readyz", "/readyz"],
    ] as const) {
      expect(await faultsOf(await fetch(product.url + url, { headers }), path, "get"), path).toEqual([]);
    }
  });

  it.each<[string, object]>([
    [
      "/parley.v1.CompletionService/Create",
      { model: "local/test", messages: [{ role: "ROLE_USER", parts: [{ text: "Hi" }] }], seed: "7" },
    ],
    ["/parley.v1.ModelService/List", {}],
    ["/parley.v1.ModelService/Get", { id: "local/test" }],
    ["/parley.v1.KeyService/GetCurrent", {}],
  ])("%s", async (path, message) => {
    expect(schemas.at("paths", path, "post", "requestBody", "content", "application/json", "schema")(message)).toEqual(
      [],
    );
    const call = (authorization: string): Promise<Response> =>
      fetch(product.url + path, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify(message),
      });
    const response = await call(`Bearer ${product.firstKey}`);
    expect(response.status).toBe(200);
    expect(await faultsOf(response, path)).toEqual([]);
    const refused = await call("");
    expect(schemas.at("components", "schemas", "ConnectError")(await refused.json())).toEqual([]);
  });
});
