import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { RawConnection, type RawResponse, rawRequest } from "./support/raw-http.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

const MIB = 1024 * 1024;
const CHAT = "POST /v1/chat/completions";
const BODY = JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] });

let upstream: Upstream;
let product: Product;
const open: RawConnection[] = [];

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hi"));
  const http = { listen: "127.0.0.1:0", cors_origins: ["https://app.example"] };
  product = await startProduct({ config: { ...localModel(upstream.url), http } });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

afterEach(() => {
  for (const connection of open.splice(0)) connection.close();
});

function dial(): RawConnection {
  const connection = new RawConnection(product.httpPort);
  open.push(connection);
  return connection;
}

/** Sends these bytes on a connection of their own. */
function send(bytes: Buffer | string): Promise<RawResponse> {
  return dial().write(bytes).response();
}

const HOST = "host: parley.example";
const JSON_TYPE = "content-type: application/json";
const auth = (): string => `authorization: Bearer ${product.firstKey}`;
const chatHeaders = (...more: readonly string[]): string[] => [HOST, JSON_TYPE, auth(), ...more];

/** An answer as the refusal that it is. Throws when it is not in OpenAI's shape, or gives something away. */
function refusalOf({ status, headers, body }: RawResponse): { status: number; type: string; message: string } {
  if (headers["content-type"] !== "application/json") throw new Error(`${status} is not JSON: ${body}`);
  if (/node:|\.ts\b|\bat .*:\d+:\d+|node_modules/.test(body)) throw new Error(`this gives too much away: ${body}`);
  const { error } = JSON.parse(body) as { error: { type: string; message: string } };
  return { status, type: error.type, message: error.message };
}

const invalid = (status: number): object => ({ status, type: "invalid_request_error" });
const NOT_FOUND = { status: 404, type: "not_found_error" };

/** What the upstream has been asked so far: a refusal must not add to it. */
const heard = (): number => upstream.exchanges.length;

describe("a request whose head is ambiguous or malformed", () => {
  it.each([
    ["a second Host", () => rawRequest(CHAT, chatHeaders("host: other.example"), BODY)],
    ["a second Authorization", () => rawRequest(CHAT, chatHeaders("Authorization: Bearer other"), BODY)],
    ["no Host", () => rawRequest(CHAT, [JSON_TYPE, auth()], BODY)],
    [
      "an absolute address of another host",
      () => rawRequest("POST http://other.example/v1/chat/completions", chatHeaders(), BODY),
    ],
    [
      "both Content-Length and Transfer-Encoding",
      () => rawRequest(CHAT, chatHeaders("content-length: 4", "transfer-encoding: chunked"), "0\r\n\r\n"),
    ],
    [
      "two different Content-Lengths",
      () => rawRequest(CHAT, chatHeaders("content-length: 4", "content-length: 5"), "aaaaa"),
    ],
    [
      "a Transfer-Encoding that does not end in chunked",
      () => rawRequest(CHAT, chatHeaders("transfer-encoding: chunked, identity"), "0\r\n\r\n"),
    ],
    [
      "an obfuscated Transfer-Encoding",
      () => rawRequest(CHAT, chatHeaders("transfer-encoding : chunked"), "0\r\n\r\n"),
    ],
    ["a folded header", () => rawRequest(CHAT, chatHeaders("x-folded: a", " b"), BODY)],
    [
      "a chunk size that is no number",
      () => rawRequest(CHAT, chatHeaders("transfer-encoding: chunked"), "zz\r\nhi\r\n0\r\n\r\n"),
    ],
    ["bare line feeds in its head", () => Buffer.from(`${CHAT} HTTP/1.1\n${HOST}\n\n`)],
    ["HTTP/1.0", () => Buffer.from(`GET /v1/models HTTP/1.0\r\n${HOST}\r\n${auth()}\r\n\r\n`)],
    ["HTTP/0.9", () => Buffer.from("GET /v1/models\r\n\r\n")],
    ["an unknown method", () => rawRequest("BREW /v1/chat/completions", chatHeaders())],
    ["no HTTP at all", () => Buffer.from("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")],
  ])("is refused for %s, in our shape", async (_, bytes) => {
    const before = heard();
    expect(refusalOf(await send(bytes()))).toMatchObject(invalid(400));
    expect(heard()).toBe(before);
  });

  it("is refused with 431 for headers that are too large or too many", async () => {
    const before = heard();
    const large = rawRequest("GET /v1/models", [HOST, auth(), `x-large: ${"a".repeat(17 * 1024)}`]);
    expect(refusalOf(await send(large))).toMatchObject(invalid(431));
    const fields = Array.from({ length: 101 }, (_, index) => `x-${index}: ${index}`);
    const many = rawRequest("GET /v1/models", [...fields, HOST, auth()]);
    expect(refusalOf(await send(many))).toMatchObject(invalid(431));
    expect(heard()).toBe(before);
  });

  it("does not bypass authentication", async () => {
    const smuggled = rawRequest("GET /v1/models", [HOST, auth()]).toString();
    const connection = dial().write(
      rawRequest(CHAT, [HOST, JSON_TYPE, "content-length: 0", "transfer-encoding: chunked"], `0\r\n\r\n${smuggled}`),
    );
    expect(refusalOf(await connection.response())).toMatchObject(invalid(400));
    await expect(connection.response()).rejects.toThrow("the connection ended");
  });
});

describe("methods and paths", () => {
  it.each(["TRACE", "DELETE", "PUT", "PROPFIND"])("%s is refused on every path", async (method) => {
    const answer = await send(rawRequest(`${method} /v1/chat/completions`, chatHeaders()));
    expect(refusalOf(answer)).toMatchObject(NOT_FOUND);
  });

  it("CONNECT gets no response", async () => {
    const asked = send(rawRequest("CONNECT parley.example:80", chatHeaders()));
    await expect(asked).rejects.toThrow("the connection ended");
  });

  it("by HTTP/1.0 are answered about health, with or without a Host header, and reported once among the refusals", async () => {
    for (const path of ["/healthz", "/readyz"])
      for (const headers of [[], [HOST]])
        expect((await send([`GET ${path} HTTP/1.0`, ...headers, "", ""].join("\r\n"))).status).toBe(200);
    const told = (): number => product.output.stderr.split("HTTP/1.1 is required").length - 1;
    for (let count = 0; count < 5; count++)
      expect(refusalOf(await send("GET /v1/models HTTP/1.0\r\n\r\n"))).toMatchObject(invalid(400));
    await expect.poll(told).toBe(1);
  });

  it("name the method that a path has, and nothing where there is none", async () => {
    const wrongMethod = await send(rawRequest("GET /v1/chat/completions", [HOST, auth()]));
    expect(refusalOf(wrongMethod)).toMatchObject(NOT_FOUND);
    expect(wrongMethod.headers["allow"]).toBe("POST");
    for (const path of ["/v1/nothing", "/V1/models", "/v1//models", "/v1/../v1/models", "/v1/models/%zz", "//"]) {
      expect(refusalOf(await send(rawRequest(`GET ${path}`, [HOST])))).toMatchObject(NOT_FOUND);
      expect(refusalOf(await send(rawRequest(`GET ${path}`, [HOST, auth()])))).toMatchObject(NOT_FOUND);
    }
  });

  it("take the key from x-api-key too, and answer a path of the API with a slash at its end", async () => {
    const key = auth().replace(/^authorization: Bearer /i, "x-api-key: ");
    expect(key).toMatch(/^x-api-key: sk_/);
    expect(await send(rawRequest("GET /v1/models/", [HOST, key]))).toMatchObject({ status: 200 });
    expect(await send(rawRequest("GET /v1/models/", [HOST, `${key}x`]))).toMatchObject({ status: 401 });
  });

  it("answer for health and readiness without a key, to GET and HEAD", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      expect(await send(rawRequest(`GET ${path}`, [HOST]))).toMatchObject({ status: 200 });
      const head = dial().write(`HEAD ${path} HTTP/1.1\r\n${HOST}\r\nconnection: close\r\n\r\n`);
      await expect(head.response()).rejects.toThrow(/^the connection ended after: HTTP\/1\.1 200 OK/);
    }
  });

  it("find a model whose ID has a slash, written raw or percent-encoded", async () => {
    for (const path of ["/v1/models/local/test", "/v1/models/local%2Ftest", "/v1/models/local%2ftest?x=1"]) {
      const { status, body } = await send(rawRequest(`GET ${path}`, [HOST, auth()]));
      expect({ status, body: JSON.parse(body) as object }).toMatchObject({ status: 200, body: { id: "local/test" } });
    }
  });
});

describe("a request's body", () => {
  it.each([
    ["bytes that are not UTF-8", () => rawRequest(CHAT, chatHeaders(), Buffer.from('{"model":"\xff"}', "latin1"))],
    ["nothing", () => rawRequest(CHAT, chatHeaders("content-length: 0"))],
    ["half a document", () => rawRequest(CHAT, chatHeaders(), BODY.slice(0, -3))],
    ["a list", () => rawRequest(CHAT, chatHeaders(), "[]")],
    ["nesting of 65 levels", () => rawRequest(CHAT, chatHeaders(), nested(65))],
    [
      "a form's content type",
      () => rawRequest(CHAT, [HOST, auth(), "content-type: application/x-www-form-urlencoded"], BODY),
    ],
    ["no content type", () => rawRequest(CHAT, [HOST, auth()], BODY)],
    [
      "a content type that only begins like JSON",
      () => rawRequest(CHAT, [HOST, auth(), "content-type: application/jsonx"], BODY),
    ],
    ["compression", () => rawRequest(CHAT, chatHeaders("content-encoding: gzip"), Buffer.from("1f8b0800", "hex"))],
  ])("is refused when it is or has %s", async (_, bytes) => {
    const before = heard();
    expect(refusalOf(await send(bytes()))).toMatchObject(invalid(400));
    expect(heard()).toBe(before);
  });

  it("may be nested 64 levels deep", async () => {
    expect(await send(rawRequest(CHAT, chatHeaders(), nested(64)))).toMatchObject({ status: 200 });
  });

  it("of five million brackets is refused without delaying other requests", async () => {
    const startedAt = performance.now();
    expect(refusalOf(await send(rawRequest(CHAT, chatHeaders(), "[".repeat(5_000_000))))).toMatchObject(invalid(400));
    // Parsing alone would take seconds.
    expect(performance.now() - startedAt).toBeLessThan(1500);
  });

  it("cannot change the program through __proto__ and constructor", async () => {
    const poison = `{"__proto__":{"model":"local/test","polluted":true},"constructor":{"prototype":{"polluted":true}},"messages":[{"role":"user","content":"hi","__proto__":{"polluted":true}}]}`;
    const before = heard();
    const { message } = refusalOf(await send(rawRequest(CHAT, chatHeaders(), poison)));
    expect(message).toContain("model");
    expect(heard()).toBe(before);
    const { body } = await send(rawRequest("GET /v1/models/local/test", [HOST, auth()]));
    expect(body).not.toContain("polluted");
    expect(await send(rawRequest(CHAT, chatHeaders(), BODY))).toMatchObject({ status: 200 });
  });

  it("over 32 MiB is refused by its content-length with a readable response, and the connection is closed", async () => {
    const connection = dial().write(rawRequest(CHAT, chatHeaders(`content-length: ${33 * MIB}`), "{"));
    const answer = await connection.response();
    expect(refusalOf(answer)).toMatchObject(invalid(413));
    expect(answer.headers["connection"]).toBe("close");
    await expect.poll(() => connection.closed, { timeout: 3000 }).toBe(true);
  });

  it("over 32 MiB can still be sent after its refusal, so that the client reads the response", async () => {
    const socket = connect(product.httpPort, "127.0.0.1");
    socket.write(rawRequest(CHAT, chatHeaders(`content-length: ${33 * MIB}`), "{"));
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 413 /);
    socket.end(Buffer.alloc(33 * MIB - 1, " "));
    // Would have been reset.
    expect(await once(socket, "close")).toEqual([false]);
  });

  it("over 32 MiB in chunks is refused with a readable response, and the connection is closed", async () => {
    const chunk = `${MIB.toString(16)}\r\n${" ".repeat(MIB)}\r\n`;
    const connection = dial().write(rawRequest(CHAT, chatHeaders("transfer-encoding: chunked"), chunk));
    for (let sent = 1; sent < 34; sent++) connection.write(chunk);
    expect(refusalOf(await connection.response())).toMatchObject(invalid(413));
    await expect.poll(() => connection.closed, { timeout: 3000 }).toBe(true);
  });

  it("gets 100-continue only after authentication", async () => {
    const refused = dial().write(rawRequest(CHAT, [HOST, JSON_TYPE, "expect: 100-continue", "content-length: 10"]));
    expect(refusalOf(await refused.response())).toMatchObject({ status: 401, type: "authentication_error" });

    const welcome = dial().write(
      rawRequest(CHAT, chatHeaders("expect: 100-continue", `content-length: ${BODY.length}`)),
    );
    expect(await welcome.response()).toMatchObject({ status: 100 });
    expect(await welcome.write(BODY).response()).toMatchObject({ status: 200 });
  });
});

/** A valid request with an unknown field, so that the whole is nested so many levels deep. */
function nested(levels: number): string {
  return `${BODY.slice(0, -1)},"x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
}

describe("connections", () => {
  it("answer pipelined requests in their order", async () => {
    const connection = dial().write(
      Buffer.concat([
        rawRequest(CHAT, chatHeaders("x-request-id: first"), BODY),
        rawRequest("GET /v1/models/local/test", [HOST, auth(), "x-request-id: second"]),
        rawRequest("GET /nowhere", [HOST, "x-request-id: third"]),
      ]),
    );
    const answers = [await connection.response(), await connection.response(), await connection.response()];
    expect(answers.map(({ status, headers }) => [status, headers["x-request-id"]])).toEqual([
      [200, "first"],
      [200, "second"],
      [404, "third"],
    ]);
  });

  it("with incomplete headers are closed after about eleven seconds", async () => {
    const silent = dial();
    const slow = dial().write(`${CHAT} HTTP/1.1\r\n${HOST}\r\nx-slow: `);
    // Node's own limits are a minute and more.
    await expect.poll(() => silent.closed && slow.closed, { timeout: 25_000, interval: 50 }).toBe(true);
    expect(refusalOf(await slow.response())).toMatchObject(invalid(408));
  });
});

describe("pages of other origins", () => {
  it("may call when their origin is allowed, and read the headers that matter", async () => {
    const { status, headers } = await send(rawRequest(CHAT, chatHeaders("origin: https://app.example"), BODY));
    expect({ status, headers }).toMatchObject({
      status: 200,
      headers: { "access-control-allow-origin": "https://app.example", vary: "origin" },
    });
    expect(headers["access-control-expose-headers"]).toContain("x-request-id");
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
  });

  it("get no CORS permission from other origins or outside /v1", async () => {
    const other = await send(rawRequest(CHAT, chatHeaders("origin: https://evil.example"), BODY));
    expect(other.headers).not.toHaveProperty("access-control-allow-origin");
    const outside = await send(rawRequest("GET /healthz", [HOST, "origin: https://app.example"]));
    expect(outside.headers).not.toHaveProperty("access-control-allow-origin");
  });

  it("get the allowed methods and headers from a preflight, without a key", async () => {
    const preflight = (origin: string): Promise<RawResponse> =>
      send(
        rawRequest("OPTIONS /v1/chat/completions", [
          HOST,
          `origin: ${origin}`,
          "access-control-request-method: POST",
          "access-control-request-headers: authorization,content-type",
        ]),
      );
    expect(await preflight("https://app.example")).toMatchObject({
      status: 204,
      headers: {
        "access-control-allow-origin": "https://app.example",
        "access-control-allow-headers": "authorization,content-type",
        "access-control-allow-methods": expect.stringContaining("POST"),
      },
    });
    expect((await preflight("https://evil.example")).headers).not.toHaveProperty("access-control-allow-origin");
  });
});
