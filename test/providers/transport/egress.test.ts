import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { createSecureServer as createHttp2Server } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext, createServer as createTlsServer, type TLSSocket, type TlsOptions } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Egress } from "../../../src/providers/transport/dialer.ts";
import { connectUpstream, UNLIMITED, type Upstream } from "../../../src/providers/transport/http.ts";
import { localhost } from "./localhost-certificate.ts";

const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

/** A provider over TLS that answers each request with the length of its body, in one piece of `length` bytes more. */
async function startProvider(options: TlsOptions = {}, length = 0, closes = false) {
  const certificates: string[] = [];
  const sockets = new Set<TLSSocket>();
  const server = createTlsServer({ ...localhost, ...options }, (socket) => {
    sockets.add(socket);
    certificates.push(String(socket.getPeerCertificate()?.subject?.CN));
    let text = "";
    socket
      .on("error", () => undefined)
      .on("data", (bytes: Buffer) => {
        text += bytes.toString("latin1");
        const [, given] = /content-length: (\d+)/.exec(text) ?? [];
        const body = text.slice(text.indexOf("\r\n\r\n") + 4);
        if (given === undefined || body.length < Number(given)) return;
        text = "";
        const answer = `${body.length}${" ".repeat(length)}`;
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`);
        if (closes) socket.end();
      });
  });
  server.on("tlsClientError", () => undefined).listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: portOf(server), certificates };
}

/** A proxy that opens tunnels to this machine for those who show `authorization`, or answers `status`. */
async function startProxy({ authorization, status }: { authorization?: string; status?: number } = {}) {
  const targets: string[] = [];
  const sockets: Socket[] = [];
  const server: Server = createHttpServer();
  server.on("connect", (request, socket: Socket, head: Buffer) => {
    targets.push(request.url ?? "");
    sockets.push(socket);
    const refusal = request.headers["proxy-authorization"] === authorization ? status : 407;
    if (refusal !== undefined) return void socket.end(`HTTP/1.1 ${refusal} No\r\ncontent-length: 0\r\n\r\n`);
    const far = connect(Number(request.url!.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\nvia: 1.1 proxy\r\n\r\n");
      far.write(head);
      far.pipe(socket).pipe(far);
    });
    sockets.push(far);
    for (const each of [far, socket]) each.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: portOf(server), targets };
}

const TRUSTED = createSecureContext({ ca: localhost.cert });

function connectTo(baseUrl: string, egress: Egress): Upstream {
  const upstream = connectUpstream({ baseUrl, allowPrivate: true, connectMs: 5000, connections: UNLIMITED, egress });
  opened.push(() => upstream.close());
  return upstream;
}

async function post(upstream: Upstream, body = "{}") {
  const { signal } = new AbortController();
  const response = await upstream.post({ path: "/x", headers: {}, body, signal, idleMs: 5000 }, "application/json");
  const text = Buffer.concat(await response.body()).toString();
  return { status: response.status, text };
}

describe("a proxy", () => {
  it("carries requests and large answers in one tunnel for each connection, with the host's own certificate", async () => {
    const { port } = await startProvider({}, 300_000);
    const proxy = await startProxy();
    const url = new URL(`http://127.0.0.1:${proxy.port}`);
    const upstream = connectTo(`https://localhost:${port}`, { proxy: url, secureContext: TRUSTED });
    for (const body of ["{}", "x".repeat(500_000)]) {
      const { status, text } = await post(upstream, body);
      expect([status, text.length, text.trim()]).toEqual([200, String(body.length).length + 300_000, `${body.length}`]);
    }
    expect(new Set(proxy.targets)).toEqual(new Set([`localhost:${port}`]));
  });

  it("is given the checked address of a stored provider, and connects to no private one", async () => {
    const { port } = await startProvider();
    const proxy = await startProxy();
    const egress = { proxy: new URL(`http://127.0.0.1:${proxy.port}`), secureContext: TRUSTED };
    const open = (allowPrivate: boolean): Upstream => {
      const upstream = connectUpstream({
        baseUrl: `https://localhost:${port}`,
        allowPrivate,
        isStored: true,
        connectMs: 5000,
        egress,
      });
      opened.push(() => upstream.close());
      return upstream;
    };
    await expect(post(open(false))).rejects.toMatchObject({ cause: { code: "ERR_PRIVATE_ADDRESS" } });
    expect(proxy.targets).toEqual([]);
    expect(await post(open(true))).toMatchObject({ status: 200 });
    expect(proxy.targets.map((target) => target.replace(`:${port}`, ""))).toEqual([
      expect.stringMatching(/^(127\.0\.0\.1|\[::1\])$/),
    ]);
  });

  it("carries HTTP/2 too", async () => {
    const server = createHttp2Server(localhost, (_, response) => response.end("by HTTP/2"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    opened.push(() => server.close());
    const proxy = await startProxy();
    const upstream = connectUpstream({
      baseUrl: `https://localhost:${portOf(server)}`,
      allowPrivate: true,
      connectMs: 5000,
      connections: { ...UNLIMITED, http2: true },
      egress: { proxy: new URL(`http://127.0.0.1:${proxy.port}`), secureContext: TRUSTED },
    });
    opened.push(() => upstream.close());
    for (let count = 0; count < 2; count++) expect(await post(upstream)).toEqual({ status: 200, text: "by HTTP/2" });
    expect(proxy.targets).toEqual([`localhost:${portOf(server)}`]);
  });

  it("gets the user and password of its address", async () => {
    const { port } = await startProvider();
    const authorization = `Basic ${Buffer.from("us er:p@ss").toString("base64")}`;
    const proxy = await startProxy({ authorization });
    const to = (user: string): Upstream =>
      connectTo(`https://localhost:${port}`, {
        proxy: new URL(`http://${user}127.0.0.1:${proxy.port}`),
        secureContext: TRUSTED,
      });
    expect(await post(to("us%20er:p%40ss@"))).toMatchObject({ status: 200 });
    await expect(post(to(""))).rejects.toMatchObject({ code: "upstream_unavailable", cause: { status: 407 } });
  });

  it.each([
    [403, false],
    [502, true],
  ])("that answers %i makes the provider unavailable (worth a retry: %j)", async (status, transient) => {
    const proxy = await startProxy({ status });
    const upstream = connectTo("https://localhost:1", { proxy: new URL(`http://127.0.0.1:${proxy.port}`) });
    await expect(post(upstream)).rejects.toMatchObject({
      code: "upstream_unavailable",
      message: "The proxy did not connect to the upstream provider.",
      transient,
    });
  });

  it("loses nothing of an answer whose end comes while it is read slowly, and the connection's", async () => {
    const { port } = await startProvider({}, 400_000, true);
    const proxy = await startProxy();
    const url = new URL(`http://127.0.0.1:${proxy.port}`);
    const upstream = connectTo(`https://localhost:${port}`, { proxy: url, secureContext: TRUSTED });
    const { signal } = new AbortController();
    const request = { path: "/x", headers: {}, body: "{}", signal, idleMs: 5000 };
    const response = await upstream.post(request, "application/json");
    let length = 0;
    for (let pieces = await response.read(); pieces !== undefined; pieces = await response.read()) {
      length += pieces.reduce((sum, piece) => sum + piece.length, 0);
      await delay(20);
    }
    expect(length).toBe(400_001);
  });

  it("that does not listen, closes the connection, or is no proxy makes the provider unavailable", async () => {
    const silent = createTlsServer();
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const free = portOf(silent);
    silent.close();
    const upstream = connectTo("https://localhost:1", { proxy: new URL(`http://127.0.0.1:${free}`) });
    await expect(post(upstream)).rejects.toMatchObject({ code: "upstream_unavailable" });
    const { port } = await startProvider();
    const toTls = connectTo("https://localhost:1", { proxy: new URL(`http://127.0.0.1:${port}`) });
    await expect(post(toTls)).rejects.toMatchObject({ code: "upstream_unavailable" });
  });

  it("does not make a certificate of another host valid", async () => {
    const { port } = await startProvider();
    const proxy = await startProxy();
    const url = new URL(`http://127.0.0.1:${proxy.port}`);
    const upstream = connectTo(`https://other.example:${port}`, { proxy: url, secureContext: TRUSTED });
    await expect(post(upstream)).rejects.toMatchObject({
      message: "The upstream provider's certificate is not valid.",
    });
  });
});

describe("an address", () => {
  it("is connected to in place of the host's, whose certificate it shows", async () => {
    const { port } = await startProvider();
    const egress = { address: "127.0.0.1", secureContext: TRUSTED };
    expect(await post(connectTo(`https://localhost:${port}`, egress))).toMatchObject({ status: 200 });
    await expect(post(connectTo(`https://other.example:${port}`, egress))).rejects.toMatchObject({
      message: "The upstream provider's certificate is not valid.",
    });
  });
});

describe("certificates", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "parley-ca-"));
    const openssl = (...argv: string[]): unknown => execFileSync("openssl", argv, { cwd: folder, stdio: "pipe" });
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Own CA");
    openssl("req", ...key, "-keyout", "client.key", "-out", "client.csr", "-subj", "/CN=parley");
    openssl(
      "x509",
      "-req",
      "-in",
      "client.csr",
      "-CA",
      "ca.pem",
      "-CAkey",
      "ca.key",
      "-out",
      "client.pem",
      "-days",
      "2",
    );
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("of a private authority are trusted where it is configured, and nowhere else", async () => {
    const { port } = await startProvider();
    const baseUrl = `https://localhost:${port}`;
    expect(await post(connectTo(baseUrl, { secureContext: TRUSTED }))).toMatchObject({ status: 200 });
    await expect(post(connectTo(baseUrl, {}))).rejects.toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream provider's certificate is not valid.",
    });
  });

  it("of the client are shown to a provider that asks for one, also in a tunnel", async () => {
    const read = (file: string): string => readFileSync(join(folder, file), "utf8");
    const { port, certificates } = await startProvider({ requestCert: true, ca: read("ca.pem") });
    const proxy = await startProxy();
    const shown = { ca: localhost.cert, cert: read("client.pem"), key: read("client.key") };
    const secureContext = createSecureContext(shown);
    const url = new URL(`http://127.0.0.1:${proxy.port}`);
    expect(await post(connectTo(`https://localhost:${port}`, { secureContext }))).toMatchObject({ status: 200 });
    expect(await post(connectTo(`https://localhost:${port}`, { secureContext, proxy: url }))).toMatchObject({
      status: 200,
    });
    expect(certificates).toEqual(["parley", "parley"]);
    await expect(post(connectTo(`https://localhost:${port}`, { secureContext: TRUSTED }))).rejects.toMatchObject({
      code: "upstream_unavailable",
    });
  });
});
