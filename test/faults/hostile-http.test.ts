import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawConnection, rawRequest } from "../product/support/raw-http.ts";
import { HAS_NGINX, startNginx } from "./hostile/nginx.ts";
import { AMBIGUITIES, SMUGGLED_PATH } from "./hostile/smuggling.ts";
import { BODY, CHAT, MIB, startTarget, type Target } from "./hostile/target.ts";
import { figure } from "./support/figures.ts";
import { scale } from "../support/scale.ts";

/** Longer than a connection stays open after a refusal. */
const CLOSED_MS = 8_000;
const PIPELINED = 8;

let target: Target;

beforeAll(async () => {
  target = await startTarget();
});

afterAll(async () => {
  await target.stop();
});

/**
 * Returns everything received for these bytes: until the connection is closed, or for valid requests until the first
 * response.
 */
async function answered(bytes: string | Buffer, { port = target.product.httpPort, closes = true } = {}) {
  const connection = new RawConnection(port).write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  // For a connection that may stay open, waits for the first response; everything else arrives before it ends.
  const first = closes ? [] : [(await connection.response().catch(() => undefined))?.status ?? 0];
  const giveUpMs = performance.now() + CLOSED_MS;
  while (!connection.closed) {
    if (!closes) break;
    if (performance.now() > giveUpMs) throw new Error(`still open after: ${bytes.toString("latin1").slice(0, 200)}`);
    await wait(20);
  }
  const { text } = await connection.finish();
  const rest = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
  return { statuses: [...first.filter((status) => status > 0), ...rest], text };
}

describe("ambiguous requests", () => {
  it("are refused once, and the connection is closed", async () => {
    const heardBefore = target.heard();
    const results = await Promise.all(
      AMBIGUITIES.map(async ({ name, bytes, valid }) => {
        const { statuses } = await answered(bytes(target.chatHeaders()), { closes: valid !== true });
        return { name, statuses, valid };
      }),
    );
    for (const { name, statuses, valid } of results) {
      // A client that still sends when the connection is closed may get a reset and no data.
      const isRefused = statuses.length === 0 || (statuses[0]! >= 400 && statuses[0]! < 500);
      expect({ name, isRight: valid === true ? statuses.length === 1 : isRefused }).toEqual({ name, isRight: true });
    }
    expect(target.heard()).toBe(heardBefore);
    expect(target.product.output.stderr).not.toContain(SMUGGLED_PATH);
    figure({ name: "smuggling: requests that may be read differently", value: results.length, unit: "", atLeast: 25 });
    const second = results.filter(({ statuses }) => statuses.length > 1).length;
    figure({ name: "smuggling: second answers", value: second, unit: "", atMost: 0 });
  });

  it.skipIf(!HAS_NGINX)("affect no other response through nginx", { timeout: 60_000 }, async () => {
    const nginx = await startNginx(target.product.httpPort);
    try {
      const stolen: string[] = [];
      for (const { name, bytes } of AMBIGUITIES) {
        // nginx forwards as two requests what it reads as two; no client may receive another client's response.
        const attack = new RawConnection(nginx.port).write(Buffer.from(bytes(target.chatHeaders())));
        const victims = await Promise.all(
          ["one", "two", "three", "four"].map(async (victim) => {
            const id = `victim-${victim}`;
            const { headers, status } = await new RawConnection(nginx.port)
              .write(rawRequest("GET /healthz", ["host: parley.example", `x-request-id: ${id}`]))
              .response();
            return status === 200 && headers["x-request-id"] === id;
          }),
        );
        if (victims.includes(false)) stolen.push(name);
        attack.close();
      }
      figure({
        name: "smuggling through nginx: responses to another client",
        value: stolen.length,
        unit: "",
        atMost: 0,
      });
      expect(stolen).toEqual([]);
    } finally {
      await nginx.stop();
    }
  });
});

describe("an HTTP/1.1 connection", () => {
  it("is answered in order when it sends eight requests at once", { timeout: 60_000 }, async () => {
    const bytesBefore = target.product.rssBytes();
    const connection = new RawConnection(target.product.httpPort);
    const requests = Array.from({ length: PIPELINED }, (_, index) =>
      rawRequest("GET /v1/models/local/test", target.chatHeaders(`x-request-id: ${index}`)),
    );
    connection.write(Buffer.concat(requests));
    let inOrder = 0;
    for (let index = 0; index < PIPELINED; index++) {
      const { status, headers } = await connection.response();
      if (status === 200 && headers["x-request-id"] === String(index)) inOrder += 1;
    }
    connection.close();
    expect(inOrder).toBe(PIPELINED);
    figure({
      name: "pipelining: requests in one write, answered in order",
      value: inOrder,
      unit: "",
      atLeast: PIPELINED,
    });
    const grownMib = Math.round((target.product.rssBytes() - bytesBefore) / MIB);
    figure({ name: "pipelining: memory", value: grownMib, unit: "MiB", atMost: 24 });
  });

  it(
    "without a valid key is closed when it sends thousands of requests, and uses little memory",
    { timeout: 60_000 },
    async () => {
      const bytesBefore = target.product.rssBytes();
      const connections = Array.from({ length: 100 }, () => {
        const connection = new RawConnection(target.product.httpPort);
        connection.write(Buffer.from("GET /v1/nowhere HTTP/1.1\r\nhost: a\r\n\r\n".repeat(20_000)));
        return connection;
      });
      await expect.poll(() => connections.every(({ closed }) => closed), { timeout: 20_000 }).toBe(true);
      // Node parses a whole read before a connection can be closed. With a response per request this used 2 MiB per
      // connection.
      const grownMib = Math.round((target.product.rssBytes() - bytesBefore) / MIB);
      figure({ name: "thousands of pipelined requests: memory", value: grownMib, unit: "MiB", atMost: 64 });
      expect(await target.goodRequest()).toBeLessThan(5_000);
    },
  );

  it(
    "is refused and closed when it floods the server with headers, without leaking memory",
    { timeout: 30_000 },
    async () => {
      const floods = [
        ["one of 1 MiB", `x-large: ${"a".repeat(MIB)}`],
        ["a hundred thousand", Array.from({ length: 100_000 }, (_, index) => `x-${index}: 1`).join("\r\n")],
        [
          "the credential last",
          `${Array.from({ length: 2_000 }, () => "x: 1").join("\r\n")}\r\nauthorization: Bearer x`,
        ],
        ["a name of 64 KiB", `${"x".repeat(64 * 1024)}: 1`],
      ] as const;
      const bytesBefore = target.product.rssBytes();
      const rounds = scale(10, 200);
      for (let round = 0; round < rounds; round++) {
        const answers = await Promise.all(
          floods.map(([, lines]) => answered(`GET /v1/models HTTP/1.1\r\nhost: a\r\n${lines}\r\n\r\n`)),
        );
        // A client that still sends when it is refused may get only a reset.
        for (const { statuses } of answers) expect([[431], []]).toContainEqual(statuses);
      }
      const address = await answered(`GET /${"a".repeat(MIB)} HTTP/1.1\r\nhost: a\r\n\r\n`);
      expect([[431], []]).toContainEqual(address.statuses);
      const grownMib = Math.round((target.product.rssBytes() - bytesBefore) / MIB);
      figure({ name: "header floods: memory", value: grownMib, unit: "MiB", atMost: 48 });
    },
  );

  it.each([
    [
      "Upgrade to h2c",
      rawRequest("GET /healthz", [
        "host: a",
        "connection: upgrade, http2-settings",
        "upgrade: h2c",
        "http2-settings: AAMAAABkAARAAAAAAAIAAAAA",
      ]),
    ],
    [
      "Upgrade to WebSocket",
      rawRequest("GET /healthz", [
        "host: a",
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version: 13",
      ]),
    ],
    ["the preface of HTTP/2", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")],
    ["CONNECT", rawRequest("CONNECT 127.0.0.1:22", ["host: 127.0.0.1:22"])],
    ["TRACE", rawRequest("TRACE /healthz", ["host: a", "authorization: Bearer secret"])],
    ["an unknown expectation", rawRequest(CHAT, ["host: a", "expect: the-unexpected"], BODY)],
  ])("is not switched to another protocol by %s", async (_, bytes) => {
    const { statuses, text } = await answered(bytes, { closes: false });
    expect(statuses.length).toBeLessThanOrEqual(1);
    expect(statuses).not.toContain(101);
    expect(text).not.toContain("Bearer secret");
    // Only an upgrade may be ignored.
    expect(statuses.includes(200)).toBe(bytes.toString("latin1").includes("upgrade:"));
  });

  it("leaves the product serving without faults", async () => {
    await target.goodRequest();
    expect(target.product.output.stderr).not.toMatch(/"level":"(fatal|error)"|Warning/);
  });
});
