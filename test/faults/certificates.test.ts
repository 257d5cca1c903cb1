import { once } from "node:events";
import { rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request as requestOnce } from "node:https";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import {
  CertificateAuthority,
  LOCAL_NAMES,
  makeCertificateFolder,
  type TestCertificate,
} from "../support/certificates.ts";
import { startTestFront, type TestFront } from "../support/front.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { askTls, connectTlsHttp2 } from "../support/tls-client.ts";
import { TestIssuer } from "../support/tokens.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
const billing = authority.issue({ names: ["URI:spiffe://example.org/billing"] });
const limited = authority.issue({ names: ["DNS:limited.example.org"] });

/** A PNG of one pixel, as text of one character for each byte. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
).toString("latin1");

const home = makeHome();
let product: Product;
let store: Store;
let ids: readonly string[];
beforeAll(async () => {
  store = await openStore({ dataDir: join(home, "data"), databaseUrl: undefined });
  const context = { store: store.keys, clock: systemClock };
  const made = [
    await createKey(context, { name: "billing" }),
    await createKey(context, {
      name: "limited",
      limits: { ...NO_LIMITS, concurrentRequests: 1, requestsPerMinute: 1 },
    }),
  ];
  ids = made.map(({ record }) => record.id);
  const tls = {
    ...folder.writePair("server", authority.issue({ names: LOCAL_NAMES })),
    client_ca_file: folder.write("ca.pem", authority.cert),
  };
  product = await startProduct({
    home,
    config: {
      http: { listen: "127.0.0.1:0", tls },
      access: {
        certificates: [
          { name: "URI:spiffe://example.org/billing", key: ids[0] },
          { name: "DNS:Limited.example.org", key: ids[1] },
        ],
      },
      limits: { burst_seconds: 1 },
      simulator: { tokens_per_second: 10, first_token_ms: 0 },
    },
  });
});
afterAll(async () => {
  await product.stop();
  await store.close();
  folder.remove();
  rmSync(home, { recursive: true });
});

const chat = (stream: boolean) => ({
  path: "/v1/chat/completions",
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    model: "alpha-haiku-4.5",
    stream,
    max_tokens: stream ? 1_000 : 1,
    // A stream that takes longer than a revocation.
    messages: [{ role: "user", content: "Write 500 words" }],
  }),
});

describe("a certificate that stands for a key", () => {
  it("has the key's limits", async () => {
    const complete = () => askTls(product.httpPort, { authority, pair: limited, ...chat(false) });
    expect(await complete()).toMatchObject({ status: 200 });
    expect(await complete()).toMatchObject({ status: 429, text: expect.stringContaining("per minute") });
  });

  it.each([
    [{ origin: "https://other.example", "sec-fetch-site": "cross-site" }, 403],
    [{ "sec-fetch-site": "same-site" }, 403],
    [{ origin: "https://other.example" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "https://localhost:PORT", "sec-fetch-site": "same-origin" }, 200],
    [{ origin: "https://localhost:PORT" }, 200],
    [{ "sec-fetch-site": "none" }, 200],
    [{}, 200],
  ])("is not used by pages of other origins, which can send forms: %o", async (page, status) => {
    const fields = { model: "beta-3-pro-image-preview", prompt: "a cat" };
    const parts = Object.entries(fields).map(
      ([name, value]) => `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    );
    const image = 'content-disposition: form-data; name="image"; filename="a.png"\r\ncontent-type: image/png';
    const { origin } = page as { readonly origin?: string };
    const headers = {
      ...page,
      ...(origin !== undefined && { origin: origin.replace("PORT", String(product.httpPort)) }),
      "content-type": "multipart/form-data; boundary=x",
    };
    const form = `${parts.join("")}--x\r\n${image}\r\n\r\n${PIXEL}\r\n--x--\r\n`;
    const body = Buffer.from(form, "latin1");
    const asked = { authority, pair: billing, path: "/v1/images/edits", method: "POST", headers, body };
    expect(await askTls(product.httpPort, asked)).toMatchObject({ status });
  });

  it("serves no longer when the key is revoked, which ends its calls", async () => {
    const response = await streamOverHttp(product.httpPort, billing);
    let text = "";
    response.on("data", (piece) => (text += String(piece)));
    await expect.poll(() => text, { timeout: 10_000 }).toContain("content");
    await revokeKey({ store: store.keys, clock: systemClock }, ids[0]!);
    await once(response, "close");
    expect(text).toContain("This API key is not valid");
    expect(await askTls(product.httpPort, { authority, pair: billing, ...chat(false) })).toMatchObject({
      status: 401,
      text: expect.stringContaining(`stands for the key ${ids[0]}, which is not in use`),
    });
  });
});

describe("calls in flight", () => {
  const clients = new CertificateAuthority();
  const name = "URI:spiffe://example.org/streaming";
  const front = clients.issue({ names: ["DNS:front.example.org"] });
  let core: TestGateway;
  let outer: TestFront;
  beforeAll(async () => {
    let keyId = "";
    const lists = { client_ca_file: folder.write("clients.pem", clients.cert), client_crl_file: listed([]) };
    const tls = {
      ...folder.writePair("core-server", authority.issue({ names: LOCAL_NAMES })),
      ...lists,
      client_certificates: "optional",
    };
    const listener = { listen: "127.0.0.1:0", tls };
    core = await startTestGateway({
      config: { http: listener, grpc: listener, simulator: { tokens_per_second: 2, first_token_ms: 0 } },
      prepareKeys: async (context) => void (keyId = (await createKey(context, { name: "billing" })).record.id),
    });
    await core.configure({ access: { certificates: [{ name, key: keyId }], fronts: ["DNS:front.example.org"] } });
    const coreTls = { ca_file: folder.write("core-ca.pem", authority.cert), ...folder.writePair("front", front) };
    outer = await startTestFront(`localhost:${core.grpcPort}`, { http: listener, core: { tls: coreTls } });
  });
  afterAll(async () => {
    await outer.close();
    await core.close();
  });

  function listed(revoked: readonly TestCertificate[]): string {
    return folder.write("clients.crl", clients.list({ revoked }));
  }

  it.each(["over HTTP", "over HTTP/2", "behind a front"])("%s end once their certificate is revoked", async (where) => {
    const pair = clients.issue({ names: [name] });
    const port = where === "behind a front" ? outer.httpPort : core.httpPort;
    const stream = await (where === "over HTTP/2" ? streamOverHttp2 : streamOverHttp)(port, pair);
    let text = "";
    stream.on("data", (piece) => (text += String(piece)));
    await expect.poll(() => text, { timeout: 10_000 }).toContain("content");
    listed([pair]);
    await once(stream, "close");
    expect(text).toContain("no longer stands for its key");
    expect(text).not.toContain("[DONE]");
  });
});

/** Begins a stream with the certificate in place of a key. */
async function streamOverHttp(port: number, pair: TestCertificate): Promise<Readable> {
  const { body, ...options } = chat(true);
  const request = requestOnce({ host: "localhost", port, ca: authority.cert, agent: false, ...pair, ...options });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return response;
}

async function streamOverHttp2(port: number, pair: TestCertificate): Promise<Readable> {
  const { body, headers, path, method } = chat(true);
  const { session } = await connectTlsHttp2(port, { authority, pair, host: "127.0.0.1" });
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": method, ":path": path, ...headers });
  stream.end(body);
  return stream;
}

describe("a front with TLS", () => {
  const issuer = new TestIssuer("https://issuer.example");
  const front = authority.issue({ names: ["DNS:front.example.org"] });
  let core: TestGateway;
  let keyId = "";
  beforeAll(async () => {
    const tls = {
      ...folder.writePair("core", authority.issue({ names: LOCAL_NAMES })),
      client_ca_file: folder.write("core-ca.pem", authority.cert),
    };
    core = await startTestGateway({
      config: { grpc: { listen: "127.0.0.1:0", tls }, simulator: { tokens_per_second: 1_000, first_token_ms: 0 } },
      prepareKeys: async (context) => {
        keyId = (await createKey(context, { name: "billing" })).record.id;
      },
    });
    const issuers = [
      {
        issuer: issuer.issuer,
        audience: "parley",
        keys_file: folder.write("keys.json", await issuer.keySet()),
        bindings: [{ claims: { sub: "worker" }, key: keyId }],
      },
    ];
    const certificates = [{ name: "URI:spiffe://example.org/billing", key: keyId }];
    await core.configure({ access: { certificates, fronts: ["DNS:front.example.org"], issuers } });
  });
  afterAll(() => core.close());

  /** Starts a front that shows this certificate. */
  async function startFront(pair: TestCertificate) {
    const tls = {
      ...folder.writePair("front-server", authority.issue({ names: LOCAL_NAMES })),
      client_ca_file: folder.write("front-ca.pem", authority.cert),
      client_certificates: "optional",
    };
    // The core has the bindings; a front with issuers forwards tokens.
    const bindings = [{ claims: { sub: "nobody" }, key: "key_nobody" }];
    const issuers = [{ issuer: "https://issuer.example", audience: "parley", keys_file: "/nowhere", bindings }];
    const started = await startTestFront(`localhost:${core.grpcPort}`, {
      http: { listen: "127.0.0.1:0", tls },
      core: { tls: { ca_file: folder.path("core-ca.pem"), ...folder.writePair("front", pair) } },
      access: { issuers },
    });
    onTestFinished(() => started.close());
    return (asked: { readonly pair?: TestCertificate; readonly authorization?: string }) => {
      const { headers, ...request } = chat(false);
      const sent = { ...headers, ...(asked.authorization !== undefined && { authorization: asked.authorization }) };
      return askTls(started.httpPort, { authority, pair: asked.pair, ...request, headers: sent });
    };
  }

  it("forwards the names of certificates, and tokens", async () => {
    const ask = await startFront(front);
    const token = await issuer.sign({ sub: "worker" });
    expect(await ask({ pair: billing })).toMatchObject({ status: 200 });
    expect(await ask({ authorization: `Bearer ${token}` })).toMatchObject({ status: 200 });
    expect(await ask({ authorization: `Bearer ${core.key}` })).toMatchObject({ status: 200 });
  });

  it("gets its core's refusals", async () => {
    const ask = await startFront(front);
    const other = await new TestIssuer(issuer.issuer).sign({ sub: "worker" });
    const refused = { status: 401, text: expect.stringContaining("token or certificate is not accepted") };
    expect(await ask({ pair: limited })).toMatchObject(refused);
    expect(await ask({ authorization: `Bearer ${other}` })).toMatchObject(refused);
    expect(core.log).toContainEqual(expect.objectContaining({ reason: "The signature of this token is not valid." }));
    expect(await ask({ pair: billing, authorization: "Certificate URI:spiffe://example.org/billing" })).toMatchObject({
      status: 401,
      text: expect.stringContaining("An API key is required"),
    });
  });

  it("is refused without a certificate that the core lists", async () => {
    const ask = await startFront(authority.issue({ names: ["DNS:other.example.org"] }));
    expect(await ask({ pair: billing })).toMatchObject({ status: 401 });
    expect(await ask({ authorization: `Bearer ${core.key}` })).toMatchObject({ status: 200 });
  });
});
