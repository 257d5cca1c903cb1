import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";

const KEY = "correcthorsebatterystaple";
const HEADER = "hunterhunterhunter";
const WORDS = `rejected: key used ${KEY} / tenant ${HEADER} at vllm-7.prod.svc, ${Buffer.from(`u:${KEY}`).toString("base64")}`;
const ERROR = {
  type: "error",
  error: { type: "invalid_request_error", code: 400, status: "INVALID_ARGUMENT", message: WORDS, param: KEY },
};

/** Forms of the provider's error, selected by a word in the conversation. */
const WAYS = {
  refusal: [400, "application/json", JSON.stringify(ERROR)],
  whole: [200, "application/json", JSON.stringify(ERROR)],
  event: [200, "text/event-stream", `event: error\ndata: ${JSON.stringify(ERROR)}\n\n`],
} as const;

let upstream: Server;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces).toString();
      const [, way] = Object.entries(WAYS).find(([name]) => body.includes(`say ${name}`))!;
      const [status, type, text] = way;
      response.writeHead(status, { "content-type": type }).end(text);
    });
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const provider = (dialect: string) => ({
    dialect,
    base_url: dialect === "openai" ? `${origin}/v1` : origin,
    allow_private: true,
    api_keys: [KEY],
    headers: { "x-tenant-secret": HEADER },
  });
  const dialects = ["openai", "anthropic", "gemini"];
  gateway = await startTestGateway({
    config: {
      providers: Object.fromEntries(dialects.map((dialect) => [dialect, provider(dialect)])),
      models: Object.fromEntries(
        dialects.map((dialect) => [`m-${dialect}`, { provider: dialect, upstream_model: "m" }]),
      ),
    },
  });
});
afterAll(async () => {
  await gateway.close();
  upstream.close();
});

describe("credentials in a provider's error", () => {
  const cases = ["openai", "anthropic", "gemini"].flatMap((dialect) => [
    { dialect, way: "refusal", stream: false },
    { dialect, way: "refusal", stream: true },
    { dialect, way: "whole", stream: false },
    { dialect, way: "whole", stream: true },
    { dialect, way: "event", stream: true },
  ]);

  it.each(cases)("are not sent to callers: $dialect, $way, stream $stream", async ({ dialect, way, stream }) => {
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ model: `m-${dialect}`, stream, messages: [{ role: "user", content: `say ${way}` }] }),
    });
    const text = await response.text();
    expect(text).toContain("rejected: key used [key] / tenant [key] at [address]");
    const seen = `${text}${JSON.stringify(gateway.log)}`;
    for (const secret of [KEY, HEADER, "prod.svc", Buffer.from(`u:${KEY}`).toString("base64")]) {
      expect(seen).not.toContain(secret);
    }
  });
});
