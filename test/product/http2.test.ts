import { execFile } from "node:child_process";
import { once } from "node:events";
import type { ClientHttp2Session, OutgoingHttpHeaders } from "node:http2";
import { promisify } from "node:util";
import { Agent, fetch } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answerOf, askHttp2, connectHttp2 } from "../support/http2-client.ts";
import { askTls, callGrpc } from "../support/tls-client.ts";
import {
  answerText,
  beginStream,
  END_EVENTS,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "./support/upstream.ts";

const MIB = 1024 * 1024;
const authority = new CertificateAuthority();
const billing = authority.issue({ names: ["URI:spiffe://example.org/billing"] });
const folder = makeCertificateFolder();

let upstream: Upstream;
let gateway: TestGateway;
/** What the upstream says. */
let said: string;
beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    if (!exchange.body.includes("slowly")) return answerText(exchange, said);
    beginStream(exchange.response);
    exchange.response.write(textEvent("Once"));
  });
  const tls = {
    ...folder.writePair("server", authority.issue({ names: LOCAL_NAMES })),
    client_ca_file: folder.write("clients.pem", authority.cert),
    client_certificates: "optional",
  };
  const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited", concurrent_requests: 500 };
  const http = { listen: "127.0.0.1:0", tls };
  let keyId = "";
  gateway = await startTestGateway({
    config: { ...localModel(upstream.url), http, limits },
    prepareKeys: async (context) => void (keyId = (await createKey(context, { name: "billing" })).record.id),
  });
  const bound = { name: "URI:spiffe://example.org/billing", key: keyId };
  await gateway.configure({ access: { certificates: [bound] } });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
  folder.remove();
});

function chat(more: object = {}): string {
  said = "hi";
  return JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }], ...more });
}

function headers(more: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  return {
    ":method": "POST",
    ":path": "/v1/chat/completions",
    authorization: `Bearer ${gateway.key}`,
    "content-type": "application/json",
    ...more,
  };
}

const open = (): ClientHttp2Session => connectHttp2(gateway.httpPort, { authority });
const contentOf = (text: string): string => {
  const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content;
};

describe("HTTP/2 over TLS", () => {
  it("serves whole answers, as HTTP/1.1 does on the same port", async () => {
    const answer = await askHttp2(open(), headers(), chat());
    expect(answer).toMatchObject({ status: 200, resetCode: 0, headers: { "cache-control": "no-store" } });
    expect(contentOf(answer.text)).toBe("hi");
    expect(answer.headers["x-ratelimit-limit-requests"] ?? answer.headers["x-request-id"]).toBeDefined();
    const older = await askTls(gateway.httpPort, {
      authority,
      path: "/v1/chat/completions",
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
      body: chat(),
    });
    expect(older.status).toBe(200);
    expect(contentOf(older.text)).toBe("hi");
  });

  it("sends the events of a stream one by one, and its end", async () => {
    const stream = open().request(headers());
    stream.end(chat({ stream: true, messages: [{ role: "user", content: "slowly" }] }));
    const [first] = (await once(stream.setEncoding("utf8"), "data")) as [string];
    expect(first).toContain("Once");
    const rest = answerOf(stream);
    upstream.exchanges.at(-1)!.response.end(textEvent(" upon") + END_EVENTS);
    expect(await rest).toMatchObject({ resetCode: 0, text: expect.stringMatching(/ upon[\s\S]*data: \[DONE\]\n\n$/) });
  });

  it("serves a hundred requests of a connection at once", async () => {
    const session = open();
    const answers = await Promise.all(Array.from({ length: 100 }, () => askHttp2(session, headers(), chat())));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  it("ends the call of a caller who resets its stream, and serves others of the connection", async () => {
    const session = open();
    const stream = session.request(headers()).on("error", () => undefined);
    stream.end(chat({ stream: true, messages: [{ role: "user", content: "slowly" }] }));
    await once(stream, "data");
    const exchange = upstream.exchanges.at(-1)!;
    stream.close(8);
    await expect.poll(() => exchange.closed).toBe(true);
    await expect.poll(async () => (await gateway.readiness()).active_calls).toBe(0);
    expect(await askHttp2(session, headers(), chat())).toMatchObject({ status: 200 });
  });

  it("takes and gives bodies of megabytes", async () => {
    const session = open();
    const messages = [{ role: "user", content: "x".repeat(4 * MIB) }];
    expect(await askHttp2(session, headers(), chat({ messages }))).toMatchObject({ status: 200 });
    expect(upstream.exchanges.at(-1)!.body.length).toBeGreaterThan(4 * MIB);
    const small = chat();
    said = "y".repeat(4 * MIB);
    const answer = await askHttp2(session, headers(), small);
    expect(answer).toMatchObject({ status: 200, resetCode: 0 });
    expect(contentOf(answer.text)).toHaveLength(4 * MIB);
  });

  it("refuses requests before their bodies come, and serves others of the connection", async () => {
    const session = open();
    const refusals: readonly (readonly [OutgoingHttpHeaders, status: number])[] = [
      [{ authorization: "Bearer wrong" }, 401],
      [{ ":path": "/v1/nothing" }, 404],
      [{ ":method": "PUT" }, 404],
      [{ "content-type": "text/plain" }, 400],
      [{ "content-encoding": "gzip" }, 400],
      [{ ":authority": "a.example", host: "other.example" }, 400],
      [{ "content-length": 40 * MIB }, 413],
    ];
    await Promise.all(
      refusals.map(async ([more, status]) => {
        const stream = session.request(headers(more));
        stream.write("{");
        const answer = await answerOf(stream);
        expect(answer).toMatchObject({ status, resetCode: 0, text: expect.stringContaining('"error"') });
        expect(answer.headers.connection).toBeUndefined();
      }),
    );
    expect(await askHttp2(session, headers(), chat())).toMatchObject({ status: 200 });
  });

  it("answers HEAD without a body, and says when a file has not changed", async () => {
    const session = open();
    const document = { ":path": "/openapi.json" };
    const whole = await askHttp2(session, document);
    expect(whole).toMatchObject({ status: 200, resetCode: 0 });
    const { etag } = whole.headers;
    expect(await askHttp2(session, { ...document, "if-none-match": etag })).toMatchObject({ status: 304, text: "" });
    const head = await askHttp2(session, { ":path": "/", ":method": "HEAD" });
    expect(head).toMatchObject({ text: "", resetCode: 0 });
    expect(head.status).toBeGreaterThanOrEqual(200);
  });

  it("takes a certificate in place of a key", async () => {
    const session = connectHttp2(gateway.httpPort, { authority, pair: billing });
    const models = { ":path": "/v1/models" };
    expect(await askHttp2(session, models)).toMatchObject({ status: 200 });
    expect(await askHttp2(open(), models)).toMatchObject({ status: 401 });
  });

  it("tells clients of gRPC which port they need", async () => {
    const stream = open().request(
      headers({ ":path": "/parley.v1.ModelService/List", "content-type": "application/grpc" }),
    );
    stream.end();
    expect((await answerOf(stream)).headers).toMatchObject({
      "grpc-status": "12",
      "grpc-message": expect.stringContaining("gRPC%20has%20a%20port%20of%20its%20own"),
    });
  });

  it("serves the dashboard's services, with their cookies", async () => {
    const session = open();
    const ask = (method: string) =>
      askHttp2(session, headers({ ":path": `/parley.console.v1.SessionService/${method}` }), "{}");
    expect(await ask("GetSession")).toMatchObject({ status: 200, resetCode: 0 });
    const { headers: received } = await ask("SignOut");
    expect(received["set-cookie"]).toEqual(expect.arrayContaining([expect.stringMatching(/^__Host-sid=.*; Secure/)]));
  });

  it("serves fetch and curl", async () => {
    const url = `https://localhost:${gateway.httpPort}/v1/chat/completions`;
    const own = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" };
    const dispatcher = new Agent({ allowH2: true, connect: { ca: authority.cert } });
    const response = await fetch(url, { method: "POST", headers: own, body: chat({ stream: true }), dispatcher });
    expect(await response.text()).toMatch(/data: \[DONE\]\n\n$/);
    await dispatcher.close();
    const flags = ["--http2", "--cacert", folder.path("clients.pem"), "-sS", "-w", "\n%{http_version} %{http_code}"];
    const sent = Object.entries(own).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
    const asked = promisify(execFile)("curl", [...flags, ...sent, "-d", chat(), url]);
    expect((await asked).stdout).toMatch(/"hi"[\s\S]*\n2 200$/);
  });
});

describe("HTTP and gRPC on one port", () => {
  it.each([
    ["over plain TCP", false],
    ["over TLS", true],
  ])("serves HTTP/1.1, HTTP/2 and gRPC %s, on one connection too", async (_, isSecure) => {
    const tls = folder.writePair("shared", authority.issue({ names: LOCAL_NAMES }));
    const http = { listen: "127.0.0.1:0", grpc: true, ...(isSecure && { tls }) };
    const shared = await startTestGateway({ config: { ...localModel(upstream.url), http } });
    const { grpcPort, httpPort, key } = shared;
    try {
      expect(grpcPort).toBe(httpPort);
      const session = connectHttp2(httpPort, isSecure ? { authority } : {});
      const authorization = `Bearer ${key}`;
      const asked = Promise.all([
        askHttp2(session, headers({ authorization }), chat()),
        callGrpc(session, "/parley.v1.ModelService/List", { authorization }),
        callGrpc(session, "/parley.v1.ModelService/List"),
        callGrpc(session, "/grpc.health.v1.Health/Check"),
      ]);
      const [answer, list, refused, health] = await asked;
      expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('"hi"') });
      expect(list).toMatchObject({ status: "0", body: expect.stringContaining("local/test") });
      expect(refused).toMatchObject({ status: "16" });
      expect(health).toMatchObject({ status: "0" });
      const dispatcher = new Agent({ allowH2: false, connect: { ca: authority.cert } });
      const url = `${isSecure ? "https" : "http"}://localhost:${httpPort}/v1/chat/completions`;
      const sent = { authorization, "content-type": "application/json" };
      const older = await fetch(url, { method: "POST", headers: sent, body: chat(), dispatcher });
      expect(await older.text()).toContain('"hi"');
      await dispatcher.close();
    } finally {
      await shared.close();
    }
  });
});
