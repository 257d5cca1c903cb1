import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import { mutations } from "./support/mutations.ts";
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

/** Checks that the answer is one of our errors, in OpenAI's shape, and gives nothing away. */
function expectRefusal(response: RawResponse, status: number, type = "invalid_request_error"): string {
  expect(response).toMatchObject({ status, headers: { "content-type": "application/json" } });
  const { error } = JSON.parse(response.body) as { error: { type: string; message: string } };
  expect(error.type).toBe(type);
  expect(response.body).not.toMatch(/node:|\.ts\b|\bat .*:\d+:\d+|node_modules/);
  return error.message;
}

/** No upstream hears of what `run` does. */
async function unheard(run: () => Promise<void>): Promise<void> {
  const before = upstream.exchanges.length;
  await run();
  expect(upstream.exchanges.length).toBe(before);
}

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
    await unheard(async () => void expectRefusal(await send(bytes()), 400));
  });

  it("is refused with 431 for headers that are too large or too many", async () => {
    await unheard(async () => {
      const large = await send(rawRequest("GET /v1/models", [HOST, auth(), `x-large: ${"a".repeat(17 * 1024)}`]));
      expectRefusal(large, 431);
      const many = Array.from({ length: 101 }, (_, index) => `x-${index}: ${index}`);
      expectRefusal(await send(rawRequest("GET /v1/models", [...many, HOST, auth()])), 431);
    });
  });

  it("is not a way past the check of the key", async () => {
    const smuggled = rawRequest("GET /v1/models", [HOST, auth()]).toString();
    const connection = dial().write(
      rawRequest(CHAT, [HOST, JSON_TYPE, "content-length: 0", "transfer-encoding: chunked"], `0\r\n\r\n${smuggled}`),
    );
    expectRefusal(await connection.response(), 400);
    await expect(connection.response()).rejects.toThrow("the connection ended");
  });
});

describe("methods and paths", () => {
  it.each(["TRACE", "CONNECT", "DELETE", "PUT", "PROPFIND"])("%s is served nowhere", async (method) => {
    const target = method === "CONNECT" ? "parley.example:80" : "/v1/chat/completions";
    const answer = await dial()
      .write(rawRequest(`${method} ${target}`, chatHeaders()))
      .response()
      .catch(() => undefined);
    // A CONNECT is not even answered: its connection is closed.
    if (method === "CONNECT") expect(answer).toBeUndefined();
    else expectRefusal(answer!, 404, "not_found_error");
  });

  it("name the method that a path has, and nothing where there is none", async () => {
    const wrongMethod = await send(rawRequest("GET /v1/chat/completions", [HOST, auth()]));
    expectRefusal(wrongMethod, 404, "not_found_error");
    expect(wrongMethod.headers["allow"]).toBe("POST");
    for (const path of [
      "/v1/nothing",
      "/V1/models",
      "/v1//models",
      "/v1/../v1/models",
      "/v1/models/",
      "/v1/models/%zz",
      "/",
    ]) {
      expectRefusal(await send(rawRequest(`GET ${path}`, [HOST])), 404, "not_found_error");
      expectRefusal(await send(rawRequest(`GET ${path}`, [HOST, auth()])), 404, "not_found_error");
    }
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
    await unheard(async () => void expectRefusal(await send(bytes()), 400));
  });

  it("may be nested 64 levels deep", async () => {
    expect(await send(rawRequest(CHAT, chatHeaders(), nested(64)))).toMatchObject({ status: 200 });
  });

  it("of five million brackets is refused without holding anybody up", async () => {
    const startedAt = performance.now();
    expectRefusal(await send(rawRequest(CHAT, chatHeaders(), "[".repeat(5_000_000))), 400);
    // Parsing alone would take seconds.
    expect(performance.now() - startedAt).toBeLessThan(1500);
  });

  it("cannot change the program through __proto__ and constructor", async () => {
    const poison = `{"__proto__":{"model":"local/test","polluted":true},"constructor":{"prototype":{"polluted":true}},"messages":[{"role":"user","content":"hi","__proto__":{"polluted":true}}]}`;
    await unheard(async () => {
      expect(expectRefusal(await send(rawRequest(CHAT, chatHeaders(), poison)), 400)).toContain("model");
    });
    const { body } = await send(rawRequest("GET /v1/models/local/test", [HOST, auth()]));
    expect(body).not.toContain("polluted");
    expect(await send(rawRequest(CHAT, chatHeaders(), BODY))).toMatchObject({ status: 200 });
  });

  it("over 32 MiB is refused by its announced length, readably, and the connection closed", async () => {
    const connection = dial().write(rawRequest(CHAT, chatHeaders(`content-length: ${33 * MIB}`), "{"));
    const answer = await connection.response();
    expectRefusal(answer, 413);
    expect(answer.headers["connection"]).toBe("close");
    await expect.poll(() => connection.closed, { timeout: 3000 }).toBe(true);
  });

  it("over 32 MiB is refused when it comes in chunks, readably, and the connection closed", async () => {
    const chunk = `${MIB.toString(16)}\r\n${" ".repeat(MIB)}\r\n`;
    const connection = dial().write(rawRequest(CHAT, chatHeaders("transfer-encoding: chunked"), chunk));
    for (let sent = 1; sent < 34; sent++) connection.write(chunk);
    expectRefusal(await connection.response(), 413);
    await expect.poll(() => connection.closed, { timeout: 3000 }).toBe(true);
  });

  it("is asked for by 100-continue only after the key was checked", async () => {
    const refused = dial().write(rawRequest(CHAT, [HOST, JSON_TYPE, "expect: 100-continue", "content-length: 10"]));
    expectRefusal(await refused.response(), 401, "authentication_error");

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

  it("whose headers do not come to an end are closed within eleven seconds", { timeout: 15_000 }, async () => {
    const startedAt = performance.now();
    const silent = dial();
    const slow = dial().write(`${CHAT} HTTP/1.1\r\n${HOST}\r\nx-slow: `);
    await expect.poll(() => silent.closed && slow.closed, { timeout: 12_500, interval: 50 }).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(12_000);
    expectRefusal(await slow.response(), 408);
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

  it("get no permission when it is not, nor outside /v1", async () => {
    const other = await send(rawRequest(CHAT, chatHeaders("origin: https://evil.example"), BODY));
    expect(other.headers).not.toHaveProperty("access-control-allow-origin");
    const outside = await send(rawRequest("GET /healthz", [HOST, "origin: https://app.example"]));
    expect(outside.headers).not.toHaveProperty("access-control-allow-origin");
  });

  it("are told by a preflight what they may send, without a key", async () => {
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

describe("two thousand requests with random damage", () => {
  it(
    "are each answered by the table, or their connection closed; and the product lives",
    { timeout: 60_000 },
    async () => {
      const valid = [
        rawRequest(CHAT, chatHeaders("connection: close"), BODY),
        rawRequest(
          CHAT,
          chatHeaders("connection: close"),
          JSON.stringify({ ...JSON.parse(BODY), stream: true, stop: ["a"], temperature: 1 }),
        ),
        rawRequest("GET /v1/models/local%2Ftest", [HOST, auth(), "connection: close"]),
        rawRequest(
          "POST /parley.v1.CompletionService/Create",
          chatHeaders("connection: close", "connect-protocol-version: 1"),
          BODY,
        ),
      ];
      const statuses = new Map<number, number>();
      const attack = async (bytes: Buffer): Promise<void> => {
        const connection = new RawConnection(product.httpPort);
        // Damage may leave a request that waits for more: half a close tells it that there is none.
        const answer = await connection.write(bytes).finish();
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        expect(answer.text).not.toMatch(/node:internal|\.ts:\d+|node_modules|^ +at /m);
      };
      const queue = mutations(valid, { count: 2000, seed: 20_261_121 });
      await Promise.all(
        Array.from({ length: 16 }, async () => {
          for (const bytes of queue) await attack(bytes);
        }),
      );
      expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
      expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 404]));
      expect(await send(rawRequest(CHAT, chatHeaders(), BODY))).toMatchObject({ status: 200 });
      expect(product.output.stderr).not.toContain('"outcome":"internal"');
    },
  );
});
