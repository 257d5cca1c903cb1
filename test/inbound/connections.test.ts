import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Connections, peerOf } from "../../src/inbound/connections.ts";

describe("connections", () => {
  let connections: Connections;
  let server: Server;
  let exempt: readonly string[];
  const clients: Socket[] = [];
  const limit = (max: number, maxPerAddress: number): void => {
    const clientOf = (address: string) => (exempt.includes(address) ? undefined : address);
    connections = new Connections({ max, maxPerAddress, clientOf });
  };
  beforeEach(async () => {
    exempt = [];
    limit(3, Infinity);
    server = createServer((socket) => {
      if (connections.add(socket)) socket.on("data", (bytes) => socket.write(bytes)).on("error", () => undefined);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy();
    server.close();
  });
  const open = async (localAddress = "127.0.0.1"): Promise<Socket> => {
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, host: "127.0.0.1", localAddress }).on("error", () => undefined);
    clients.push(client);
    await once(client, "connect");
    return client;
  };
  /** Whether what is sent comes back. */
  const works = (client: Socket): Promise<boolean> =>
    new Promise((resolve) => {
      client.once("data", () => resolve(true)).once("close", () => resolve(false));
      if (client.destroyed) resolve(false);
      client.write("?");
    });

  it("beyond the limit are closed, and earlier ones continue", async () => {
    const kept = [await open(), await open(), await open()];
    for (const one of kept) expect(await works(one)).toBe(true);
    expect(await works(await open())).toBe(false);
    for (const one of kept) expect(await works(one)).toBe(true);
    expect(connections.refused).toBe(1);
  });

  it("that have sent nothing make room for new ones, the oldest first", async () => {
    const spoke = await open();
    expect(await works(spoke)).toBe(true);
    const [silent, second] = [await open(), await open()];
    for (let count = 0; count < 2; count++) expect(await works(await open())).toBe(true);
    await expect.poll(() => silent.closed && second.closed).toBe(true);
    expect(await works(spoke)).toBe(true);
  });

  it("without a request make room for new ones", async () => {
    const http = createHttpServer((_request, response) => void response.end("here"));
    http.prependListener("connection", (socket: Socket) => connections.add(socket));
    connections.onFull(() => http.closeIdleConnections());
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
    const { port } = http.address() as AddressInfo;
    try {
      const ask = async (): Promise<Socket> => {
        const client = connect({ port, host: "127.0.0.1" }).on("error", () => undefined);
        clients.push(client);
        client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        await Promise.race([once(client, "data"), once(client, "close")]);
        return client;
      };
      const kept = [await ask(), await ask(), await ask()];
      expect(kept.map(({ closed }) => closed)).toEqual([false, false, false]);
      expect((await ask()).bytesRead).toBeGreaterThan(0);
      await expect.poll(() => kept.every(({ closed }) => closed)).toBe(true);
    } finally {
      http.closeAllConnections();
      http.close();
    }
  });

  it("that have closed count no more", async () => {
    for (let count = 0; count < 10; count++) {
      const one = await open();
      expect(await works(one)).toBe(true);
      one.destroy();
    }
    await expect.poll(async () => works(await open())).toBe(true);
  });

  it("are limited for one address, unless it is exempt", async () => {
    limit(10, 2);
    for (let count = 0; count < 2; count++) expect(await works(await open())).toBe(true);
    expect(await works(await open())).toBe(false);
    expect(await works(await open("127.0.0.2"))).toBe(true);
    exempt = ["127.0.0.1"];
    expect(await works(await open())).toBe(true);
  });
});

describe("the client that an address counts for", () => {
  it.each([
    ["192.0.2.77", "192.0.2.77"],
    ["::ffff:192.0.2.77", "::ffff:192.0.2.77"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8:1:3::6", "2001:db8:1:3::/64"],
    ["2001:0DB8::1", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ])("for %s is %s", (address, client) => {
    expect(peerOf(address)).toBe(client);
  });
});
