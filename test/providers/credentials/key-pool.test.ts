import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { toApiKey } from "../../../src/providers/credentials/api-key.ts";
import { type KeyRest, withKeyPool } from "../../../src/providers/credentials/key-pool.ts";
import { connectUpstream, type Upstream } from "../../../src/providers/transport/http.ts";

let server: Server | undefined;
let upstream: Upstream | undefined;

afterEach(async () => {
  await upstream?.close();
  server?.closeAllConnections();
  server?.close();
});

interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string>;
}

/** A pool of these keys before a server that answers each key as `replies` says, else 200; and what came of its requests. */
async function poolOf(keys: readonly string[], replies: Record<string, Reply> = {}) {
  const used: string[] = [];
  const rests: KeyRest[] = [];
  let nowMs = 0;
  const own = createServer((request, response) => {
    const key = String(request.headers["x-api-key"]);
    used.push(key);
    const { status, headers } = replies[key] ?? { status: 200 };
    request.resume().on("end", () => response.writeHead(status, headers).end("{}"));
  });
  server = own;
  own.listen(0, "127.0.0.1");
  await once(own, "listening");
  const { port } = own.address() as AddressInfo;
  const plain = connectUpstream({ baseUrl: `http://127.0.0.1:${port}`, allowPrivate: true, connectMs: 1000 });
  const pool = withKeyPool(plain, {
    keys: keys.map((key) => toApiKey(key, "x-api-key")),
    onRest: (rest) => rests.push(rest),
    now: () => nowMs,
  });
  upstream = pool;
  const headers = { "content-type": "application/json" };
  return {
    used,
    rests,
    pass: (ms: number) => (nowMs += ms),
    send: async (keyFamilyId?: string) => {
      const { signal } = new AbortController();
      const response = await pool.post(
        { path: "/", headers, body: "{}", signal, idleMs: 1000, keyFamilyId },
        "application/json",
      );
      await response.body();
      return response.status;
    },
  };
}

const callers = Array.from({ length: 150 }, (_, index) => `caller ${index}`);

describe("a pool of keys", () => {
  it("gives each caller one key, and the callers about equally many", async () => {
    const { send, used } = await poolOf(["a", "b", "c"]);
    for (const caller of callers) {
      await send(caller);
      await send(caller);
    }
    const first = used.filter((_, index) => index % 2 === 0);
    expect(used.filter((_, index) => index % 2 === 1)).toEqual(first);
    for (const key of ["a", "b", "c"]) expect(first.filter((one) => one === key).length).toBeGreaterThan(30);
  });

  it.each([429, 401])("sends with the next key at once after %i, and lets the key rest", async (status) => {
    const { send, used, rests, pass } = await poolOf(["a", "b"], { a: { status, headers: { "retry-after": "3" } } });
    // A caller of the key that is refused.
    let caller = 0;
    while (!used.includes("a")) expect(await send(`caller ${caller++}`)).toBe(200);
    const own = `caller ${caller - 1}`;
    expect(used.slice(-2)).toEqual(["a", "b"]);
    expect(rests).toEqual([{ key: 1, status, restMs: 3000 }]);
    pass(2999);
    await send(own);
    expect(used.slice(-1)).toEqual(["b"]);
    pass(1);
    await send(own);
    expect(used.slice(-2)).toEqual(["a", "b"]);
  });

  it("keeps callers of other keys at their keys while one rests", async () => {
    const { send, used } = await poolOf(["a", "b", "c"]);
    for (const caller of callers) await send(caller);
    const before = [...used];
    await upstream?.close();
    server?.close();
    const second = await poolOf(["a", "b", "c"], { a: { status: 429 } });
    const after: string[] = [];
    for (const caller of callers) {
      await second.send(caller);
      after.push(second.used.at(-1)!);
    }
    const others = before.map((key, index) => (key === "a" ? after[index] : key));
    expect(after).toEqual(others);
    expect(new Set(after)).toEqual(new Set(["b", "c"]));
  });

  it("answers the provider's refusal when no key is left, and then asks with the one that rests least", async () => {
    const { send, used } = await poolOf(["a", "b"], {
      a: { status: 429, headers: { "retry-after": "30" } },
      b: { status: 429, headers: { "retry-after": "20" } },
    });
    expect(await send()).toBe(429);
    expect(used.toSorted()).toEqual(["a", "b"]);
    expect(await send()).toBe(429);
    expect(used.slice(2)).toEqual(["b"]);
  });

  it.each([
    [{}, 10_000],
    [{ "retry-after": "86400" }, 60_000],
  ])("lets a key rest for a bounded time (%j)", async (headers, restMs) => {
    const { send, rests } = await poolOf(["a"], { a: { status: 429, headers } });
    expect(await send()).toBe(429);
    expect(rests).toEqual([{ key: 1, status: 429, restMs }]);
  });

  it.each([400, 403, 404, 500])("does not try another key after %i", async (status) => {
    const { send, used } = await poolOf(["a", "b"], { a: { status }, b: { status } });
    expect(await send()).toBe(status);
    expect(used).toHaveLength(1);
  });
});
