import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RawConnection, rawRequest } from "../../product/support/raw-http.ts";
import { answerText, localModel, startUpstream, type Upstream } from "../../product/support/upstream.ts";
import { startTestGateway, type TestGateway } from "../../support/gateway.ts";

const CHAT = "POST /v1/chat/completions";
const BODY = JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] });
/** More than a connection may send in a second. */
const TOO_MANY = 100_000;
const CHUNKED = "transfer-encoding: chunked";

let upstream: Upstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hi"));
  gateway = await startTestGateway({ config: localModel(upstream.url) });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

let connection: RawConnection;
afterEach(() => connection.close());

const auth = (): string => `authorization: Bearer ${gateway.key}`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
/** A chunked body of `text` in pieces of this size. */
const inChunks = (text: string, size: number): string =>
  `${text
    .match(new RegExp(`.{1,${size}}`, "gs"))!
    .map(chunk)
    .join("")}0\r\n\r\n`;

function send(line: string, headers: readonly string[], body: string): RawConnection {
  connection = new RawConnection(gateway.httpPort);
  return connection.write(rawRequest(line, ["host: a", CHUNKED, ...headers], body));
}

describe("a body in tiny chunks", () => {
  it.each([
    ["thousands of single bytes", 8_000, 1],
    ["many pieces of 64 bytes", 4_000_000, 64],
  ])("is read when it has %s", async (_, bytes, size) => {
    const body = inChunks(BODY.padEnd(bytes), size);
    const response = await send(CHAT, ["content-type: application/json", auth()], body).response();
    expect(response).toMatchObject({ status: 200 });
  });

  it.each([
    ["of a completion", CHAT, ["content-type: application/json"], 400],
    ["of a form", "POST /v1/images/edits", ["content-type: multipart/form-data; boundary=x"], 400],
    ["over Connect", "POST /parley.v1.CompletionService/Create", ["content-type: application/json"], 400],
    ["over gRPC-Web", "POST /parley.v1.CompletionService/Stream", ["content-type: application/grpc-web+proto"], 200],
  ])(
    "is refused before its end with a readable answer, and its connection is closed: %s",
    async (_, line, headers, status) => {
      const {
        headers: answered,
        body,
        ...rest
      } = await send(line, [...headers, auth()], chunk(" ").repeat(TOO_MANY)).response();
      expect(rest).toEqual({ status });
      expect(decodeURIComponent(answered["grpc-message"] ?? body)).toContain("too many chunks of less than 64 bytes");
      expect(answered["connection"]).toBe("close");
      await expect.poll(() => connection.closed, { timeout: 5_000 }).toBe(true);
      await expect.poll(async () => (await gateway.readiness()).active_calls).toBe(0);
    },
  );

  it.each([
    ["a health check", "GET /healthz"],
    ["a list of models", "GET /v1/models"],
  ])("that is not read closes its connection: %s", async (_, line) => {
    send(line, [auth()], "");
    expect(await connection.response()).toMatchObject({ status: 200, headers: { connection: "keep-alive" } });
    connection.write(chunk(" ").repeat(TOO_MANY));
    await expect.poll(() => connection.closed, { timeout: 5_000 }).toBe(true);
  });
});
