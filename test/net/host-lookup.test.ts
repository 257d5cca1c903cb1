import { createHook } from "node:async_hooks";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { Connections } from "../../src/providers/transport/connections.ts";
import { sharedLookup } from "../../src/net/host-lookup.ts";
import { UNLIMITED } from "../../src/providers/transport/http.ts";
import { withLines } from "../../src/telemetry/logger.ts";
import { TestIssuer } from "../support/tokens.ts";
import { startRawServer } from "../providers/transport/raw-server.ts";

const LOOPBACK: LookupAddress[] = [{ address: "127.0.0.1", family: 4 }];

/** A resolver whose answers the test sends. */
function heldResolver() {
  const asked: { readonly host: string; answer(addresses: LookupAddress[]): void; fail(code: string): void }[] = [];
  const lookup = sharedLookup(
    (host) =>
      new Promise((answer, reject) => {
        asked.push({ host, answer, fail: (code) => reject(Object.assign(new Error(code), { code })) });
      }),
  );
  /** As a socket looks a host up. */
  const find = (host: string, all = true) =>
    new Promise((resolve, reject) =>
      lookup(host, { all }, (error, address, family) => (error ? reject(error) : resolve([address, family]))),
    );
  return { asked, lookup, find };
}

afterEach(() => vi.useRealTimers());

describe("a host's addresses", () => {
  it("are looked up once for all sockets that wait for them, and for those of the next seconds", async () => {
    vi.useFakeTimers();
    const { asked, find } = heldResolver();
    const first = [find("a.example"), find("a.example"), find("b.example"), find("a.example", false)];
    expect(asked.map(({ host }) => host)).toEqual(["a.example", "b.example"]);
    for (const each of asked) each.answer(LOOPBACK);
    const all = [LOOPBACK, undefined];
    expect(await Promise.all(first)).toEqual([all, all, all, ["127.0.0.1", 4]]);
    vi.advanceTimersByTime(4999);
    expect(await find("a.example")).toEqual(all);
    expect(asked).toHaveLength(2);
    vi.advanceTimersByTime(1);
    void find("a.example");
    expect(asked).toHaveLength(3);
  });

  it("are looked up again after a failure", async () => {
    const { asked, find } = heldResolver();
    const waiting = [find("a.example"), find("a.example")];
    asked[0]!.fail("EAI_AGAIN");
    for (const each of waiting) await expect(each).rejects.toMatchObject({ code: "EAI_AGAIN" });
    const again = find("a.example");
    asked[1]!.answer(LOOPBACK);
    expect(await again).toEqual([LOOPBACK, undefined]);
  });

  it("are looked up once while connections give up, and serve the next one", async () => {
    const { asked, lookup } = heldResolver();
    const server = await startRawServer((socket) => socket.write("HTTP/1.1 204 No\r\n\r\n"));
    const url = new URL(`http://slow.example:${server.port}`);
    const connections = new Connections({ url, lookup }, 50, UNLIMITED);
    const send = () =>
      new Promise<unknown>((resolve) => {
        const request = { head: "POST / HTTP/1.1\r\n", body: Buffer.alloc(0), idleMs: 5000, key: "", pool: "" };
        const onHead = (status: number): void => resolve(status);
        const listener = {
          connection: undefined,
          onSent() {},
          onUnsent() {},
          onData() {},
          onEnd() {},
          onHead,
          onError: resolve,
        };
        connections.send(request, listener);
      });
    const late = expect.objectContaining({ code: "CONNECT_TIMEOUT" }) as unknown;
    expect(await Promise.all([send(), send()])).toEqual([late, late]);
    expect(await send()).toEqual(late);
    const served = send();
    asked[0]!.answer(LOOPBACK);
    expect(await served).toBe(204);
    expect(asked).toHaveLength(1);
    await connections.close();
    await server.stop();
  });

  it("are looked up by the system once for connections of all providers, and through a proxy", async () => {
    // The process's own addresses may have been looked up by another file's tests.
    vi.resetModules();
    const { connectUpstream } = await import("../../src/providers/transport/http.ts");
    let lookups = 0;
    const hook = createHook({ init: (_, type) => void (lookups += Number(type === "GETADDRINFOREQWRAP")) }).enable();
    const server = await startRawServer((socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"));
    const proxy = createServer().on("connect", (_, socket) => void socket.end("HTTP/1.1 403 No\r\n\r\n"));
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    const plain = `http://localhost:${server.port}`;
    const options = { allowPrivate: true, connectMs: 5000 };
    const egress = { proxy: new URL(`http://localhost:${(proxy.address() as AddressInfo).port}`) };
    const upstreams = [
      connectUpstream({ baseUrl: plain, ...options }),
      connectUpstream({ baseUrl: plain, ...options }),
      connectUpstream({ baseUrl: "https://provider.invalid", ...options, egress }),
      connectUpstream({ baseUrl: "https://localhost:1", ...options, allowPrivate: false }),
    ];
    const { signal } = new AbortController();
    const request = { path: "/", headers: {}, body: "{}", signal, idleMs: 5000 };
    const outcomes = upstreams.flatMap((upstream) =>
      [1, 2].map(() => upstream.post(request, "*/*").catch(({ cause }: Error) => cause)),
    );
    const served = expect.objectContaining({ status: 200 }) as unknown;
    const refused = expect.objectContaining({ status: 403 }) as unknown;
    const isPrivate = expect.objectContaining({ code: "ERR_PRIVATE_ADDRESS" }) as unknown;
    const expected = [served, served, served, served, refused, refused, isPrivate, isPrivate];
    expect(await Promise.all(outcomes)).toEqual(expected);
    expect(lookups).toBe(1);
    hook.disable();
    await Promise.all([...upstreams.map((upstream) => upstream.close()), server.stop()]);
    proxy.close();
  });

  it("are looked up by the system once for requests to OpenID providers and issuers of tokens", async () => {
    vi.resetModules();
    const { boundedFetch } = await import("../../src/access/oidc/bounded-fetch.ts");
    const { tokenVerifierOf } = await import("../../src/gateway/token-issuers.ts");
    const issuer = new TestIssuer("https://issuer.example");
    const { signal } = new AbortController();
    const keySet = { url: "https://localhost:1/keys", caFile: undefined };
    const configured = {
      issuer: issuer.issuer,
      audience: "parley",
      algorithms: ["ES256"],
      clockSkewMs: 0,
      bindings: [],
    };
    const log = withLines(pino({ level: "silent" }), { lines: { write: () => undefined } });
    const verifier = await tokenVerifierOf([{ ...configured, keySet }], { clock: systemClock, log });
    const token = await issuer.sign({ sub: "worker" });
    const server = createServer((_, response) => response.end("{}"));
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://localhost:${(server.address() as AddressInfo).port}/`;
    let lookups = 0;
    const hook = createHook({ init: (_, type) => void (lookups += Number(type === "GETADDRINFOREQWRAP")) }).enable();
    const asked = { method: "GET", headers: {}, body: undefined, redirect: "manual", signal } as const;
    const answers = Promise.all([1, 2, 3].map(() => boundedFetch(url, asked)));
    await expect(verifier!.keyOf(token)).rejects.toThrow("cannot be read at the moment");
    expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200]);
    hook.disable();
    expect(lookups).toBe(1);
    server.close();
  });
});
