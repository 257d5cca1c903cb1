import { once } from "node:events";
import { Agent } from "node:https";
import { connect as connectTls } from "node:tls";
import { type Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  CertificateAuthority,
  LOCAL_NAMES,
  makeCertificateFolder,
  type TestCertificate,
} from "../support/certificates.ts";
import { createKey } from "../../src/access/keys.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import {
  askTls,
  callGrpc,
  connectTlsHttp2,
  type TlsAnswer,
  tlsGrpcClient,
  type TlsRequest,
} from "../support/tls-client.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

const authority = new CertificateAuthority();
const foreign = new CertificateAuthority("foreign");
const folder = makeCertificateFolder();
const [one, other] = [authority.issue({ names: LOCAL_NAMES }), authority.issue({ names: LOCAL_NAMES })];
/** Node's messages of a connection that was closed after the handshake, by when it sees that. */
const CLOSED = /socket hang up|ECONNRESET|EPIPE|socket disconnected/;
const LISTEN = "127.0.0.1:0";

let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hi"));
});
afterAll(async () => {
  await upstream.close();
  folder.remove();
});

/** Starts a gateway with TLS on all its listeners, with the files `server.pem` and `server.key`. */
async function start(tls: object = {}): Promise<TestGateway> {
  const section = { listen: LISTEN, tls: { ...folder.writePair("server", one), ...tls } };
  const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited", concurrent_requests: 500 };
  return startTestGateway({
    config: { ...localModel(upstream.url), http: section, grpc: section, operations: section, limits },
  });
}

/** Completes over HTTP. */
function complete({ httpPort, key }: TestGateway, options: Partial<TlsRequest> = {}): Promise<TlsAnswer> {
  return askTls(httpPort, {
    authority,
    path: "/v1/chat/completions",
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] }),
    ...options,
  });
}

function grpcClient({ grpcPort }: TestGateway, pair?: TestCertificate): Client {
  const client = tlsGrpcClient(grpcPort, { authority, pair });
  onTestFinished(() => client.close());
  return client;
}

/** Lists models over gRPC; returns "done" or the error. */
function listModels(client: Client, { key }: TestGateway): Promise<string> {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  const asItIs = (bytes: Buffer): Buffer => bytes;
  const { promise, resolve } = Promise.withResolvers<string>();
  const path = "/parley.v1.ModelService/List";
  client.makeUnaryRequest(path, asItIs, asItIs, Buffer.alloc(0), metadata, {}, (error: ServiceError | null) =>
    resolve(error === null ? "done" : error.message),
  );
  return promise;
}

/** The certificate that a listener shows a new connection. */
async function serialOf(port: number): Promise<string> {
  const socket = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

describe("TLS on all listeners", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.close());

  it("serves HTTP, gRPC and the operations port, which clients can verify", async () => {
    expect(await complete(gateway)).toMatchObject({ status: 200, text: expect.stringContaining('"hi"') });
    expect(await listModels(grpcClient(gateway), gateway)).toBe("done");
    expect(await askTls(gateway.operationsPort, { authority, path: "/readyz" })).toMatchObject({ status: 200 });
    await expect(complete(gateway, { authority: foreign })).rejects.toThrow(/verify|self-signed|issuer/);
    await expect(complete(gateway, { servername: "parley.example", host: "127.0.0.1" })).rejects.toThrow(/altnames/);
    expect(gateway.log).toContainEqual(expect.objectContaining({ msg: "TLS files loaded", setting: "grpc.tls" }));
  });

  it("has cookies for https only", async () => {
    const { cookies } = await askTls(gateway.httpPort, {
      authority,
      host: "127.0.0.1",
      path: "/parley.console.v1.SessionService/SignOut",
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(cookies).toMatch(/^__Host-sid=.*; Secure/);
  });

  it("replaces its certificate under load without a failed call", async () => {
    const serials = new Set<string>();
    const before = await serialOf(gateway.httpPort);
    const over = new AbortController();
    const kept = new Agent({ keepAlive: true, maxSockets: 2 });
    onTestFinished(() => kept.destroy());
    const client = grpcClient(gateway);
    const callers = [
      ...Array.from({ length: 2 }, () => async () => {
        const { status, serial } = await complete(gateway);
        serials.add(serial);
        expect(status).toBe(200);
      }),
      async () => expect((await complete(gateway, { agent: kept })).status).toBe(200),
      async () => expect(await listModels(client, gateway)).toBe("done"),
      async () => expect(await listModels(grpcClient(gateway), gateway)).toBe("done"),
    ];
    const load = callers.map(async (call) => {
      while (!over.signal.aborted) await call();
    });
    await complete(gateway);
    for (const pair of [other, one, other]) {
      folder.writePair("server", pair);
      await gateway.configure({});
      await complete(gateway);
    }
    over.abort();
    await Promise.all(load);
    const after = await serialOf(gateway.httpPort);
    expect(after).not.toBe(before);
    expect([...serials].toSorted()).toEqual([before, after].toSorted());
    expect(await serialOf(gateway.grpcPort)).toBe(after);
  });

  it("keeps its certificate when the new files are broken, and says why", async () => {
    const before = await serialOf(gateway.httpPort);
    folder.writePair("server", { ...one, key: authority.issue().key });
    await gateway.configure({});
    expect(await serialOf(gateway.httpPort)).toBe(before);
    expect(gateway.log).toContainEqual(
      expect.objectContaining({
        level: 50,
        setting: "http.tls",
        problem: expect.stringMatching(/the private key in .*\.key does not belong to the certificate in .*\.pem/),
      }),
    );
  });

  it("does not start with a file that is missing, and names it", async () => {
    const section = { listen: LISTEN, tls: { cert_file: "/nowhere/a.pem", key_file: "/nowhere/a.key" } };
    await expect(startTestGateway({ config: { grpc: section } })).rejects.toThrow(
      "grpc.tls: /nowhere/a.pem cannot be read: there is no such file",
    );
  });
});

describe("clients' certificates", () => {
  const client = authority.issue({ names: ["URI:spiffe://example.org/billing"] });
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await start({ client_ca_file: folder.write("clients.pem", authority.cert) });
  });
  afterAll(() => gateway.close());

  it("are required by all listeners with client_ca_file", async () => {
    expect((await complete(gateway, { pair: client })).status).toBe(200);
    expect(await listModels(grpcClient(gateway, client), gateway)).toBe("done");
    for (const pair of [undefined, foreign.issue(), authority.issue({ validTo: new Date(Date.now() - 1000) })]) {
      await expect(complete(gateway, { pair })).rejects.toThrow(CLOSED);
      expect(await listModels(grpcClient(gateway, pair), gateway)).toMatch(/UNAVAILABLE/);
    }
    expect(gateway.log).toContainEqual(
      expect.objectContaining({ setting: "http.tls", reason: "NO_CERTIFICATE", address: "127.0.0.1", refusals: 1 }),
    );
  });

  it("stand for keys that a reload names, and a warning names one that does not exist", async () => {
    const bound = { name: "URI:spiffe://example.org/billing", key: "key_missing" };
    await gateway.configure({ access: { certificates: [bound] } });
    expect(await complete(gateway, { pair: client, headers: {} })).toMatchObject({
      status: 401,
      text: expect.stringContaining("The client certificate stands for the key key_missing, which is not in use."),
    });
    const warning = expect.objectContaining({ level: 40, setting: "access", key_id: "key_missing" });
    await expect.poll(() => gateway.log).toContainEqual(warning);
    await gateway.configure({});
  });

  it("stand for the same keys after a reload that was rejected", async () => {
    const { providers } = localModel("https://127.0.0.1:9");
    const broken = Object.fromEntries(
      Object.entries(providers).map(([id, provider]) => [id, { ...provider, tls: { ca_file: "/nowhere/ca.pem" } }]),
    );
    const bound = { name: "URI:spiffe://example.org/billing", key: "key_missing" };
    await expect(gateway.configure({ providers: broken, access: { certificates: [bound] } })).rejects.toThrow("ca.pem");
    const answer = await complete(gateway, { pair: client, headers: {} });
    expect(answer.text).toContain("is in access.certificates");
  });

  it("of authorities that are no longer listed are refused, and their connections end after their calls", async () => {
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => kept.destroy());
    const grpc = grpcClient(gateway, client);
    expect((await complete(gateway, { pair: client, agent: kept })).status).toBe(200);
    expect(await listModels(grpc, gateway)).toBe("done");
    const certified = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => certified.destroy());
    const withoutKey = { authority, path: "/v1/models", pair: client, agent: certified };
    expect((await askTls(gateway.httpPort, withoutKey)).text).toContain("No alternative name");

    folder.write("clients.pem", foreign.cert);
    await gateway.configure({});
    await expect(complete(gateway, { pair: client })).rejects.toThrow(CLOSED);
    // The connections from before: one more answer, then they are closed. Their certificate counts no longer.
    expect((await complete(gateway, { pair: client, agent: kept })).status).toBe(200);
    expect(await askTls(gateway.httpPort, withoutKey)).toMatchObject({
      status: 401,
      text: expect.stringContaining("An API key is required"),
    });
    await expect(complete(gateway, { pair: client, agent: kept })).rejects.toThrow(CLOSED);
    await expect.poll(() => listModels(grpc, gateway)).toMatch(/UNAVAILABLE/);
    const admitted = foreign.issue();
    expect((await complete(gateway, { pair: admitted })).status).toBe(200);
  });
});

describe("revocation lists of clients' certificates", () => {
  it("refuse a revoked certificate at all listeners after a reload, and end its connections after their calls", async () => {
    const [mine, others] = [authority.issue(), authority.issue()];
    const gateway = await start({
      client_ca_file: folder.write("clients.pem", authority.cert),
      client_crl_file: folder.write("clients.crl", authority.list()),
    });
    onTestFinished(() => gateway.close());
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => kept.destroy());
    const grpc = grpcClient(gateway, mine);
    expect((await complete(gateway, { pair: mine, agent: kept })).status).toBe(200);
    expect(await listModels(grpc, gateway)).toBe("done");

    folder.write("clients.crl", authority.list({ revoked: [mine] }));
    await gateway.configure({});
    await expect(complete(gateway, { pair: mine })).rejects.toThrow(CLOSED);
    const health = { authority, pair: mine, path: "/readyz" };
    await expect(askTls(gateway.operationsPort, health)).rejects.toThrow(CLOSED);
    expect((await complete(gateway, { pair: mine, agent: kept })).status).toBe(200);
    await expect(complete(gateway, { pair: mine, agent: kept })).rejects.toThrow(CLOSED);
    await expect.poll(() => listModels(grpc, gateway)).toMatch(/UNAVAILABLE/);
    expect((await complete(gateway, { pair: others })).status).toBe(200);
    expect(gateway.log).toContainEqual(expect.objectContaining({ setting: "http.tls", reason: "CERT_REVOKED" }));
  });
});

describe("calls over gRPC with a certificate in place of a key", () => {
  const PATH = "/parley.v1.KeyService/GetCurrent";
  const name = "URI:spiffe://example.org/billing";
  const pair = authority.issue({ names: [name] });
  const certified = { authority, pair };
  let gateway: TestGateway;
  let keyId = "";
  beforeAll(async () => {
    const tls = {
      ...folder.writePair("server", one),
      client_ca_file: folder.write("clients.pem", authority.cert),
      client_certificates: "optional",
    };
    gateway = await startTestGateway({
      config: { grpc: { listen: "0.0.0.0:0", allow_public: true, tls } },
      prepareKeys: async (context) => void (keyId = (await createKey(context, { name: "billing" })).record.id),
    });
    await gateway.configure({ access: { certificates: [{ name, key: keyId }] } });
  });
  afterAll(() => gateway.close());

  it("are those of their own connection, also where another one has the same address and port of the client", async () => {
    const from = { localAddress: "127.0.0.1" };
    const first = await connectTlsHttp2(gateway.grpcPort, { authority, host: "127.0.0.2", ...from });
    onTestFinished(() => first.session.destroy());
    expect(await callGrpc(first.session, PATH)).toMatchObject({ status: "16" });
    const { localPort } = first.socket;
    const second = await connectTlsHttp2(gateway.grpcPort, { ...certified, host: "127.0.0.1", ...from, localPort });
    onTestFinished(() => second.session.destroy());
    const accepted = { status: "0", body: expect.stringContaining(keyId) };
    expect(await callGrpc(second.session, PATH)).toEqual(accepted);
    expect(await callGrpc(first.session, PATH)).toMatchObject({ status: "16" });
    first.session.destroy();
    await once(first.socket, "close");
    expect(await callGrpc(second.session, PATH)).toEqual(accepted);
  });

  it("take no connection's name from a caller", async () => {
    const { session } = await connectTlsHttp2(gateway.grpcPort, { ...certified, host: "127.0.0.1" });
    onTestFinished(() => session.destroy());
    expect(await callGrpc(session, PATH, { "parley-connection": "other" })).toMatchObject({ status: "0" });
  });
});
