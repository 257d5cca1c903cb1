import { once } from "node:events";
import { type AddressInfo, connect as connectPlain, type Socket } from "node:net";
import { connect, type ConnectionOptions, createServer, type TLSSocket } from "node:tls";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { alternativeNames, TlsEntrance, type TlsEntranceOptions } from "../../src/net/tls-entrance.ts";
import { WatchedTlsFiles } from "../../src/net/tls-files.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";

const authority = new CertificateAuthority();
const foreign = new CertificateAuthority("foreign");
const server = authority.issue({ names: LOCAL_NAMES });
const client = authority.issue({ names: ["URI:spiffe://example.org/billing", "DNS:Billing.example.org"] });
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

/** A server that sends "hello" on each connection. */
async function start(
  options: Partial<TlsEntranceOptions> & { readonly clientCa?: string; readonly list?: string } = {},
) {
  const { cert_file: certFile, key_file: keyFile } = folder.writePair("server", server);
  const caFile = options.clientCa === undefined ? undefined : folder.write("clients.pem", options.clientCa);
  const crlFile = options.list === undefined ? undefined : folder.write("clients.crl", options.list);
  const report = { loaded: () => undefined, refused: () => undefined, expired: () => undefined };
  const files = await WatchedTlsFiles.open({ certFile, keyFile, caFile, crlFile }, report);
  const refused = vi.fn<TlsEntranceOptions["refused"]>();
  const abused = vi.fn<TlsEntranceOptions["abused"]>();
  const clientOf = (address: string): string => address;
  const defaults = { protocols: ["http/1.1"], clientCertificates: "required", clientOf, refused, abused } as const;
  const tls = new TlsEntrance({ files, ...defaults, ...options });
  const opened: Socket[] = [];
  const listener = createServer(tls.serverOptions, (socket) => {
    opened.push(socket);
    if (!socket.destroyed) socket.write("hello");
  });
  tls.guard(listener, () => true);
  await once(listener.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    tls.close();
    listener.close();
    for (const socket of opened) socket.destroy();
  });
  return { port: (listener.address() as AddressInfo).port, tls, opened, refused, abused };
}

/** Connects, and returns what arrives until the end: "hello", or the code of the error. */
function visit(port: number, options: ConnectionOptions = {}): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert, ...options });
  socket.on("data", (data) => {
    resolve(data.toString());
    socket.destroy();
  });
  socket.on("error", ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
  socket.on("close", () => resolve("closed"));
  return promise;
}

describe("the TLS of a listener", () => {
  it("has the versions 1.2 and 1.3, and none before", async () => {
    const { port } = await start();
    for (const version of ["TLSv1.2", "TLSv1.3"] as const)
      expect(await visit(port, { minVersion: version, maxVersion: version })).toBe("hello");
    for (const version of ["TLSv1", "TLSv1.1"] as const)
      expect(await visit(port, { minVersion: version, maxVersion: version, ciphers: "DEFAULT@SECLEVEL=0" })).toMatch(
        /PROTOCOL_VERSION/,
      );
  });

  it("agrees on its protocol, and refuses clients that speak none of it", async () => {
    const { port } = await start();
    expect(await visit(port, { ALPNProtocols: ["h2", "http/1.1"] })).toBe("hello");
    expect(await visit(port, { ALPNProtocols: ["h2"] })).toMatch(/NO_APPLICATION_PROTOCOL/);
  });

  it("closes connections that send something else", async () => {
    const { port } = await start();
    const socket = connectPlain(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\n\r\n"));
    socket.on("error", () => undefined).resume();
    await expect(once(socket, "close")).resolves.toBeDefined();
  });

  it("closes the oldest of too many connections whose handshake is not finished", async () => {
    const { port } = await start({ maxHandshakes: 3 });
    const silent = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const socket = connectPlain(port, "127.0.0.1")
          .on("error", () => undefined)
          .resume();
        onTestFinished(() => void socket.destroy());
        await once(socket, "connect");
        return socket;
      }),
    );
    expect(await visit(port)).toBe("hello");
    await vi.waitFor(() => expect(silent.filter(({ closed }) => !closed).length).toBe(2), { timeout: 5000 });
    expect(await visit(port)).toBe("hello");
  });
});

describe("a client behind the address of others", () => {
  /** Connects and sends these bytes, again and again. */
  function attack(port: number, bytes: Buffer): void {
    const open = new Set<Socket>();
    const begin = (): void => {
      const socket = connectPlain(port, "127.0.0.1", () => socket.write(bytes));
      open.add(socket);
      socket.on("error", () => undefined).resume();
      socket.once("close", () => open.delete(socket));
      if (open.size > 20) open.values().next().value!.destroy();
    };
    const beginning = setInterval(begin, 5);
    onTestFinished(() => {
      clearInterval(beginning);
      for (const socket of open) socket.destroy();
    });
  }

  it.each(["required", "not asked for"])(
    "that sends parts of handshakes blocks none of them, where certificates are %s",
    async (certificates) => {
      const { port, abused, opened } = await start(certificates === "required" ? { clientCa: authority.cert } : {});
      // The beginning of a ClientHello that is longer.
      attack(port, Buffer.concat([Buffer.from([0x16, 3, 1, 0x40, 0, 1, 0, 0x60, 0, 3, 3]), Buffer.alloc(15_000)]));
      for (let count = 0; count < 40; count++) {
        expect(await visit(port, client)).toBe("hello");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect(opened).toHaveLength(40);
      expect(abused).not.toHaveBeenCalled();
    },
  );

  it("that sends costly certificates blocks none of them once one is accepted", async () => {
    const { port, abused } = await start({ clientCa: authority.cert });
    const pair = foreign.issue();
    expect(await visit(port, client)).toBe("hello");
    for (let count = 0; count < 3; count++) {
      expect(await visit(port, { ...pair, cert: pair.cert + foreign.cert.repeat(8) })).not.toBe("hello");
      expect(await visit(port, client)).toBe("hello");
    }
    expect(abused).toHaveBeenCalledTimes(3);
  });
});

describe("clients' certificates", () => {
  const bad = {
    "no certificate": {},
    "a certificate of another authority": foreign.issue(),
    "a certificate that has expired": authority.issue({ validTo: new Date(Date.now() - 1000) }),
    "a certificate that is not valid yet": authority.issue({ validFrom: new Date(Date.now() + 3_600_000) }),
  };

  it.each(Object.entries(bad))("are required: %s is refused, and reported", async (what, pair) => {
    const { port, refused } = await start({ clientCa: authority.cert });
    expect(await visit(port, pair)).not.toBe("hello");
    expect(await visit(port, client)).toBe("hello");
    expect(refused).toHaveBeenCalledTimes(1);
    expect(refused.mock.calls[0]![0]).toMatch(what === "no certificate" ? /^NO_CERTIFICATE$/ : /^(CERT_|UNABLE_TO)/);
  });

  it.each(Object.entries(bad))("are optional on request: %s", async (what, pair) => {
    const { port, opened, tls } = await start({ clientCa: authority.cert, clientCertificates: "optional" });
    expect((await visit(port, pair)) === "hello").toBe(what === "no certificate");
    expect(opened.map((socket) => tls.certificateOf(socket))).toEqual([undefined]);
  });

  it("have names and an end", async () => {
    const { port, opened, tls } = await start({ clientCa: authority.cert });
    await visit(port, client);
    const { names, expiresAtMs } = tls.certificateOf(opened[0]!)!;
    expect(names).toEqual(["URI:spiffe://example.org/billing", "DNS:billing.example.org"]);
    expect(expiresAtMs).toBeGreaterThan(Date.now());
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "are verified by the authorities in force, also when a session of %s is resumed",
    async (version) => {
      const { port, opened, tls, refused } = await start({ clientCa: authority.cert });
      const session = await sessionOf(port, version);
      const only = { ...client, minVersion: version, maxVersion: version };
      expect(await visit(port, { ...only, session })).toBe("hello");
      expect((opened.at(-1) as TLSSocket).isSessionReused()).toBe(true);
      expect(tls.certificateOf(opened.at(-1)!)?.names[0]).toBe("URI:spiffe://example.org/billing");

      folder.write("clients.pem", foreign.cert);
      await tls.check();
      expect(await visit(port, { ...only, session })).not.toBe("hello");
      expect(refused).toHaveBeenCalled();
      expect(tls.isRetired(opened[0]!)).toBe(true);
    },
  );

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "are refused once they have expired, also when a session of %s is resumed",
    async (version) => {
      const { port, tls, opened, refused } = await start({ clientCa: authority.cert });
      // Certificates have whole seconds.
      const pair = authority.issue({ validTo: new Date(Date.now() + 60_000) });
      const session = await sessionOf(port, version, pair);
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
      onTestFinished(() => void vi.useRealTimers());
      const only = { ...pair, minVersion: version, maxVersion: version };
      expect(await visit(port, { ...only, session })).not.toBe("hello");
      expect(refused.mock.calls.map(([reason]) => reason)).toEqual(["CERT_HAS_EXPIRED"]);
      expect(tls.isRetired(opened[0]!)).toBe(true);
    },
  );

  it("of a costly chain block their client", async () => {
    const { port, abused, refused } = await start({ clientCa: authority.cert, clientCertificates: "optional" });
    const pair = foreign.issue();
    expect(await visit(port, { ...pair, cert: pair.cert + foreign.cert.repeat(8) })).not.toBe("hello");
    expect(refused).toHaveBeenCalledOnce();
    expect(abused.mock.calls).toEqual([["COSTLY_CERTIFICATES", "127.0.0.1"]]);
    expect(await visit(port)).not.toBe("hello");
  });

  describe("with revocation lists", () => {
    it.each(["TLSv1.2", "TLSv1.3"] as const)(
      "are refused once they are revoked, also when a session of %s is resumed, and those of others are not",
      async (version) => {
        const { port, tls, opened, refused } = await start({ clientCa: authority.cert, list: authority.list() });
        const only = { ...client, minVersion: version, maxVersion: version };
        const session = await sessionOf(port, version);
        const open = connect({ port, host: "127.0.0.1", servername: "localhost", ca: authority.cert, ...client });
        onTestFinished(() => void open.destroy());
        await once(open, "data");
        const other = authority.issue({ names: ["DNS:other"] });
        expect(await visit(port, other)).toBe("hello");
        const [mine, others] = [opened.at(-2)!, opened.at(-1)!];
        const changed = vi.fn<() => void>();
        tls.onTrustChange(changed);

        folder.write("clients.crl", authority.list({ revoked: [client] }));
        await tls.check();
        expect(changed).toHaveBeenCalledOnce();
        expect([tls.isRetired(mine), tls.certificateOf(mine)]).toEqual([true, undefined]);
        expect([tls.isRetired(others), tls.certificateOf(others)?.names]).toEqual([false, ["DNS:other"]]);
        expect(await visit(port, { ...only, session })).not.toBe("hello");
        expect(refused.mock.calls.map(([reason]) => reason)).toEqual(["CERT_REVOKED"]);
        expect(await visit(port, other)).toBe("hello");
      },
    );

    it("of which one has expired are refused, also when a session is resumed", async () => {
      const list = authority.list({ validTo: new Date(Date.now() + 60_000) });
      const { port, refused } = await start({ clientCa: authority.cert, list });
      const session = await sessionOf(port, "TLSv1.3");
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
      onTestFinished(() => void vi.useRealTimers());
      expect(await visit(port, { ...client, session })).not.toBe("hello");
      expect(refused.mock.calls.map(([reason]) => reason)).toEqual(["CRL_HAS_EXPIRED"]);
    });

    it.each([
      ["that expired before the start", { validTo: new Date(Date.now() - 1000) }, "CRL_HAS_EXPIRED"],
      ["that are from the future at the start", { validFrom: new Date(Date.now() + 600_000) }, "CRL_NOT_YET_VALID"],
    ])("%s are refused", async (_, validity, reason) => {
      const { port, refused } = await start({ clientCa: authority.cert, list: authority.list(validity) });
      expect(await visit(port, client)).not.toBe("hello");
      expect(refused.mock.calls.map(([name]) => name)).toEqual([reason]);
    });
  });

  async function sessionOf(port: number, version: "TLSv1.2" | "TLSv1.3", pair = client): Promise<Buffer> {
    const socket = connect({
      port,
      host: "127.0.0.1",
      servername: "localhost",
      ca: authority.cert,
      ...pair,
      minVersion: version,
      maxVersion: version,
    });
    const [session] = (await once(socket, "session")) as [Buffer];
    socket.destroy();
    return session;
  }
});

describe("Node's text of alternative names", () => {
  it("is read name by name", () => {
    expect(alternativeNames("DNS:a.example, IP Address:127.0.0.1, URI:spiffe://x/y, email:a@b")).toEqual([
      "DNS:a.example",
      "URI:spiffe://x/y",
    ]);
    expect(alternativeNames(undefined)).toEqual([]);
  });

  it("has no name that is only a part of another", () => {
    expect(alternativeNames('URI:"http://a, DNS:evil.example", DNS:"b\\", URI:spiffe://evil", DNS:c')).toEqual([
      "DNS:c",
    ]);
  });
});
