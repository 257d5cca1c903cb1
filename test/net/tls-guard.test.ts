import { createPrivateKey, createPublicKey, generateKeyPairSync, generatePrimeSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import {
  connect as connectTls,
  type ConnectionOptions,
  createServer as createTlsServer,
  type TLSSocket,
} from "node:tls";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { TlsGuard, type TlsGuardOptions } from "../../src/net/tls-guard.ts";
import { CertificateAuthority, LOCAL_NAMES } from "../support/certificates.ts";

const authority = new CertificateAuthority();
const foreign = new CertificateAuthority("foreign");
const CERTIFICATE = foreign.issue();

/** The server's part of a handshake that does not finish. */
const ANSWER = Buffer.alloc(1_000);

/** A server that sends "hello" after the handshake; without TLS the handshake never finishes, after an answer or before it. */
async function start({ tls = true, isShared = false, asksForCertificates = true, answers = true } = {}) {
  const closed = vi.fn<TlsGuardOptions["closed"]>();
  let nowMs = 1_000;
  const guard = new TlsGuard({
    clientOf: (address) => (isShared ? undefined : address),
    asksForCertificates,
    closed,
    nowMs: () => nowMs,
  });
  onTestFinished(() => guard.close());
  const accepted: Socket[] = [];
  const opened: TLSSocket[] = [];
  const accept = (socket: Socket): void => {
    socket.on("error", () => undefined);
    if (!guard.add(socket)) return;
    accepted.push(socket);
    if (tls) return;
    socket.resume();
    if (answers) socket.write(ANSWER);
  };
  const finish = (socket: TLSSocket): void => {
    const below = accepted.find(({ remotePort }) => remotePort === socket.remotePort)!;
    socket.on("error", () => undefined).resume();
    opened.push(socket);
    guard.finish(below, socket);
    const certificate = socket.getPeerX509Certificate();
    if (!socket.authorized && certificate !== undefined) guard.refuse(below, certificate);
    else socket.write("hello");
  };
  const trust = { requestCert: true, rejectUnauthorized: false, ca: authority.cert };
  const server = tls
    ? createTlsServer({ ...authority.issue({ names: LOCAL_NAMES }), ...trust }, finish)
        .prependListener("connection", accept)
        .on("tlsClientError", () => undefined)
    : createServer(accept);
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of accepted) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { port, guard, closed, accepted, opened, pass: (ms: number) => void (nowMs += ms) };
}

/** Connects with TLS, and returns the first text, or undefined when the connection is closed before. */
async function visit(port: number, options: ConnectionOptions = {}): Promise<string | undefined> {
  const socket = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert, ...options });
  socket.on("error", () => undefined);
  const text = new Promise<string>((resolve) => socket.once("data", (data) => resolve(data.toString())));
  const first = await Promise.race([text, closeOf(socket).then(() => undefined)]);
  socket.destroy();
  return first;
}

function closeOf(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.on("error", () => undefined).once("close", resolve));
}

/** Sends bytes that are no handshake, and returns once the server has read them. */
async function send(world: Awaited<ReturnType<typeof start>>, bytes: number): Promise<Socket> {
  const before = world.accepted.length;
  const socket = connect(world.port, "127.0.0.1").on("error", () => undefined);
  socket.resume().write(randomBytes(bytes));
  onTestFinished(() => void socket.destroy());
  await expect.poll(() => world.accepted[before]?.bytesRead, { interval: 5 }).toBe(bytes);
  return socket;
}

/** An RSA key whose exponent has 64 bits. */
function longExponent() {
  const exponent = 2n ** 63n + 29n;
  const [p, q] = Array.from({ length: 2 }, () =>
    generatePrimeSync(1024, { bigint: true, add: 2n * exponent, rem: 3n }),
  ) as [bigint, bigint];
  const order = (p - 1n) * (q - 1n);
  const d = inverse(exponent, order);
  const [dp, dq, qi] = [d % (p - 1n), d % (q - 1n), inverse(q, p)];
  const numbers = Object.entries({ n: p * q, e: exponent, d, p, q, dp, dq, qi });
  const key = { kty: "RSA", ...Object.fromEntries(numbers.map(([name, value]) => [name, toBase64Url(value)])) };
  const privateKey = createPrivateKey({ format: "jwk", key });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

function inverse(value: bigint, modulus: bigint): bigint {
  let [r0, r1, s0, s1] = [modulus, value % modulus, 0n, 1n];
  while (r1 !== 0n) [r0, r1, s0, s1] = [r1, r0 % r1, s1, s0 - (r0 / r1) * s1];
  return ((s0 % modulus) + modulus) % modulus;
}

function toBase64Url(value: bigint): string {
  const digits = value.toString(16);
  return Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex").toString("base64url");
}

describe("a refused certificate", () => {
  const others = Array.from({ length: 4 }, (_, index) => new CertificateAuthority(`authority ${index}`).cert);
  const costly = {
    "with four others": { ...CERTIFICATE, cert: [CERTIFICATE.cert, ...others].join("") },
    "of many bytes": foreign.issue({
      names: Array.from({ length: 400 }, (_, index) => `DNS:a-long-name-${index}.example`),
    }),
    "with a curve of other costs": foreign.issue({
      pair: generateKeyPairSync("ec", { namedCurve: "brainpoolP512r1" }),
    }),
    "with a long exponent": foreign.issue({ pair: longExponent() }),
  };

  it.each(Object.entries(costly))("%s blocks its client for a minute", async (_, pair) => {
    const { port, closed, pass } = await start();
    expect(await visit(port)).toBe("hello");
    expect(await visit(port, pair)).toBeUndefined();
    expect(closed.mock.calls).toEqual([["COSTLY_CERTIFICATES", "127.0.0.1"]]);
    expect(await visit(port)).toBeUndefined();
    pass(60_000);
    expect([await visit(port), await visit(port)]).toEqual(["hello", "hello"]);
  });

  it("leaves its client one connection in ten seconds, for those who share its address", async () => {
    const { port, pass } = await start();
    await visit(port, costly["with four others"]);
    for (let turn = 0; turn < 3; turn++) {
      expect(await visit(port)).toBeUndefined();
      pass(10_000);
      expect(await visit(port)).toBe("hello");
    }
  });

  it("blocks no client of which a caller was authenticated within an hour, not even before", async () => {
    const { port, guard, closed, opened, pass } = await start();
    await visit(port, costly["with four others"]);
    pass(10_000);
    expect(await visit(port)).toBe("hello");
    guard.authenticated(opened.at(-1)!);
    expect([await visit(port), await visit(port)]).toEqual(["hello", "hello"]);
    pass(3_599_999);
    expect(await visit(port, costly["with four others"])).toBeUndefined();
    expect(closed).toHaveBeenCalledTimes(2);
    expect(await visit(port)).toBe("hello");
    pass(1);
    await visit(port, costly["with four others"]);
    expect(await visit(port)).toBeUndefined();
  });

  it("that is ordinary blocks no client, and none blocks an address of many", async () => {
    const { port, closed } = await start();
    const cert = [CERTIFICATE.cert, ...others.slice(1)].join("");
    for (const pair of [CERTIFICATE, { ...CERTIFICATE, cert }])
      await new Promise<void>((resolve) => {
        const socket = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert, ...pair });
        socket.once("session", () => resolve(void socket.destroy()));
      });
    expect(await visit(port)).toBe("hello");
    expect(closed).not.toHaveBeenCalled();
    const shared = await start({ isShared: true });
    expect(await visit(shared.port, costly["with four others"])).toBeUndefined();
    expect(shared.closed).toHaveBeenCalledOnce();
    expect(await visit(shared.port)).toBe("hello");
  });

  it("closes the unfinished handshakes of its client, and no open connection", async () => {
    const { port } = await start();
    const open = connectTls({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert });
    onTestFinished(() => void open.destroy());
    await once(open, "data");
    const silent = connect(port, "127.0.0.1").resume();
    const gone = closeOf(silent);
    await once(silent, "connect");
    expect(await visit(port, costly["with four others"])).toBeUndefined();
    await gone;
    expect(open.closed).toBe(false);
  });
});

describe("handshakes that do not finish", () => {
  it("block their client once they have taken too many bytes in a minute, also while they last", async () => {
    const world = await start({ tls: false });
    const { guard, closed, port, pass } = world;
    for (const bytes of [30_000, 30_000]) {
      const socket = await send(world, bytes);
      socket.destroy();
      await expect.poll(() => world.accepted.at(-1)!.closed).toBe(true);
    }
    guard.look();
    expect(closed).not.toHaveBeenCalled();
    const last = await send(world, 20_000);
    guard.look();
    expect(closed.mock.calls).toEqual([["UNFINISHED_HANDSHAKES", "127.0.0.1"]]);
    await expect.poll(() => last.closed).toBe(true);
    const next = connect(port, "127.0.0.1").resume();
    await closeOf(next);
    pass(60_000);
    const held = await send(world, 60_000);
    guard.look();
    expect(held.closed).toBe(false);
  });

  it.each([
    { what: "are short", bytes: 4_096, options: {} },
    { what: "have no answer yet", bytes: 16_384, options: { answers: false } },
    { what: "are for a server that asks for no certificates", bytes: 16_384, options: { asksForCertificates: false } },
  ])("do not count that $what, however many there are", async ({ bytes, options }) => {
    const world = await start({ tls: false, ...options });
    for (let count = 0; count < 40; count++) {
      const socket = await send(world, bytes);
      if (count % 2 === 0) socket.destroy();
    }
    await expect.poll(() => world.accepted.filter(({ closed }) => closed).length).toBe(20);
    world.guard.look();
    expect(world.closed).not.toHaveBeenCalled();
    await send(world, bytes);
  });
});

describe("an open connection", () => {
  /** A client that writes records with this many bytes of data. */
  async function write(world: Awaited<ReturnType<typeof start>>, bytes: number, records: number): Promise<void> {
    const socket = connectTls({ port: world.port, host: "127.0.0.1", servername: "localhost", ca: authority.cert });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).resume();
    await once(socket, "secureConnect");
    for (let count = 0; count < records && !socket.destroyed; count++)
      await new Promise((resolve) => socket.write(randomBytes(bytes), resolve));
    const [opened] = world.opened;
    await expect.poll(() => opened!.destroyed || opened!.bytesRead === bytes * records).toBe(true);
  }

  it("is closed, and its client blocked, when its records carry hardly any data", async () => {
    const world = await start();
    await write(world, 1, 4_000);
    world.pass(250);
    world.guard.look();
    expect(world.closed.mock.calls).toEqual([["RECORDS_WITHOUT_DATA", "127.0.0.1"]]);
    expect(await visit(world.port)).toBeUndefined();
  });

  it.each([
    { what: "small frames", bytes: 9, records: 2_000 },
    { what: "a body", bytes: 16_384, records: 500 },
  ])("stays open with $what", async ({ bytes, records }) => {
    const world = await start();
    await write(world, bytes, records);
    world.pass(250);
    world.guard.look();
    expect(world.closed).not.toHaveBeenCalled();
  });
});
