import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawConnection, rawRequest } from "../product/support/raw-http.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { flood, FLOODS } from "./hostile/floods.ts";
import { SLOW_KINDS, type SlowClient, type SlowKind } from "./hostile/slow.ts";
import { MIB, startTarget, type Target } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const GONE_MS = 15_000;
const DRIP_MS = 500;
/** As over plain TCP; the fastest of some tries counts. */
const CLOSED_MS = 1_000;
const TRIES = 4;
/** Unfinished handshakes that a listener keeps. */
const MAX_HANDSHAKES = 1_024;

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
let target: Target;
beforeAll(async () => {
  const section = folder.writePair("server", authority.issue({ names: LOCAL_NAMES }));
  target = await startTarget(undefined, { tls: { authority, section } });
});
afterAll(async () => {
  await target.stop();
  folder.remove();
});

function overTcp(port: number, first: Buffer, drip: Buffer = Buffer.alloc(0)): SlowClient {
  const socket = connectPlain(port, "127.0.0.1")
    .on("error", () => undefined)
    .resume();
  socket.write(first);
  return {
    get gone() {
      return socket.closed;
    },
    drip: () => void (socket.closed || socket.write(drip)),
    close: () => socket.destroy(),
  };
}

/** A record of a handshake that is longer than what follows. */
const RECORD = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

const UNFINISHED: readonly SlowKind[] = ["httpPort" as const, "grpcPort" as const].flatMap((port) => [
  { name: `${port}: no handshake`, open: ({ product }) => overTcp(product[port], Buffer.alloc(0)) },
  { name: `${port}: part of a handshake`, open: ({ product }) => overTcp(product[port], RECORD) },
  { name: `${port}: a handshake in bytes`, open: ({ product }) => overTcp(product[port], RECORD, Buffer.from([0])) },
]);

describe("hostile clients over TLS", () => {
  it(
    "that are slow, in a handshake or after it, are closed within fifteen seconds",
    { timeout: timeLimit(60, 120) },
    async () => {
      const kinds = [...UNFINISHED, ...SLOW_KINDS];
      const sinceMs = performance.now();
      const clients = Array.from({ length: scale(100, 1_000) }, (_, index) => {
        const { name, open } = kinds[index % kinds.length]!;
        return { name, client: open(target) };
      });
      const left = () => clients.filter(({ client }) => !client.gone);
      while (left().length > 0 && performance.now() - sinceMs < 2 * GONE_MS) {
        for (const { client } of left()) client.drip();
        await target.goodRequest();
        await wait(DRIP_MS);
      }
      const lastMs = Math.round(performance.now() - sinceMs);
      expect(left().map(({ name }) => name)).toEqual([]);
      figure({ name: "slow clients over TLS: the last one gone", value: lastMs, unit: "ms", atMost: GONE_MS });
    },
  );

  it.each(FLOODS)("are disconnected when they send $name", { timeout: timeLimit(60, 120) }, async (attack) => {
    let bestMs = Infinity;
    for (let turn = 0; turn < TRIES && bestMs > CLOSED_MS; turn++)
      bestMs = Math.min(bestMs, await flood(target, attack, { reads: true }));
    expect(bestMs).toBeLessThan(CLOSED_MS);
  });

  it("that pipeline thousands of requests are disconnected", async () => {
    const connection = new RawConnection(target.dialHttp());
    connection.write(rawRequest("GET /healthz", ["host: a"]).toString().repeat(5_000));
    await expect.poll(() => connection.closed, { timeout: 10_000 }).toBe(true);
  });

  it(
    "that begin thousands of handshakes hold few of them, and little memory",
    { timeout: timeLimit(60, 120) },
    async () => {
      await target.goodRequest();
      const before = target.product.rssBytes();
      const sockets: Socket[] = [];
      for (let index = 0; index < scale(3_000, 10_000); index++) {
        const socket = connectPlain(target.product.httpPort, "127.0.0.1")
          .on("error", () => undefined)
          .resume();
        sockets.push(socket);
        await once(socket, "connect");
        socket.write(RECORD);
        if (index % 500 === 499) await target.goodRequest();
      }
      await target.goodRequest();
      const countOpen = (): number => sockets.filter(({ closed }) => !closed).length;
      // Soon: those that are kept end after ten seconds anyway.
      await expect.poll(countOpen, { timeout: 2_000 }).toBeLessThanOrEqual(MAX_HANDSHAKES);
      const open = countOpen();
      const mib = Math.round((target.product.rssBytes() - before) / MIB);
      for (const socket of sockets) socket.destroy();
      figure({ name: "unfinished handshakes: kept", value: open, unit: "", atMost: MAX_HANDSHAKES });
      figure({ name: "unfinished handshakes: memory", value: mib, unit: "MiB", atMost: 128 });
    },
  );

  it("leave the product serving without faults", async () => {
    await target.goodRequest();
    expect(target.product.output.stderr).not.toMatch(/"level":"(fatal|error)"|Warning/);
  });
});
