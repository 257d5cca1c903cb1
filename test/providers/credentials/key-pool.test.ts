import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { toApiKey } from "../../../src/providers/credentials/api-key.ts";
import { type KeyPause, withKeyPool } from "../../../src/providers/credentials/key-pool.ts";
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
async function poolOf(keys: readonly string[], replies: Record<string, Reply | ((body: string) => Reply)> = {}) {
  const used: string[] = [];
  const pauses: KeyPause[] = [];
  let nowMs = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const key = String(request.headers["x-api-key"]);
    used.push(key);
    const given = replies[key] ?? { status: 200 };
    const body = await text(request);
    const { status, headers } = typeof given === "function" ? given(body) : given;
    response.writeHead(status, headers).end("{}");
  };
  const own = createServer((request, response) => void answer(request, response));
  server = own;
  own.listen(0, "127.0.0.1");
  await once(own, "listening");
  const { port } = own.address() as AddressInfo;
  const plain = connectUpstream({ baseUrl: `http://127.0.0.1:${port}`, allowPrivate: true, connectMs: 1000 });
  const pool = withKeyPool(plain, {
    keys: keys.map((key) => toApiKey(key, "x-api-key")),
    onPause: (pause) => pauses.push(pause),
    now: () => nowMs,
  });
  upstream = pool;
  const headers = { "content-type": "application/json" };
  return {
    used,
    pauses,
    pass: (ms: number) => (nowMs += ms),
    send: async (keyFamilyId?: string, { accountId = "acct", body = "{}" } = {}) => {
      const { signal } = new AbortController();
      const response = await pool.post(
        { path: "/", headers, body, signal, idleMs: 1000, keyFamilyId, accountId },
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

  it.each([429, 401])("sends with the next key at once after %i, and pauses the key", async (status) => {
    const { send, used, pauses, pass } = await poolOf(["a", "b"], { a: { status, headers: { "retry-after": "3" } } });
    // A caller of the key that is refused.
    let caller = 0;
    while (!used.includes("a")) expect(await send(`caller ${caller++}`)).toBe(200);
    const own = `caller ${caller - 1}`;
    expect(used.slice(-2)).toEqual(["a", "b"]);
    expect(pauses).toEqual([{ key: 1, status, pauseMs: 3000 }]);
    pass(2999);
    await send(own);
    expect(used.slice(-1)).toEqual(["b"]);
    pass(1);
    await send(own);
    expect(used.slice(-2)).toEqual(["a", "b"]);
  });

  it("keeps callers of other keys at their keys while one is paused", async () => {
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

  it("answers the provider's refusal when no key is left, and then asks with the one whose pause ends first", async () => {
    const { send, used } = await poolOf(["a", "b"], {
      a: { status: 429, headers: { "retry-after": "30" } },
      b: { status: 429, headers: { "retry-after": "20" } },
    });
    expect(await send()).toBe(429);
    expect(used.toSorted()).toEqual(["a", "b"]);
    expect(await send()).toBe(429);
    expect(used.slice(2)).toEqual(["b"]);
  });

  it("pauses no keys of other accounts for requests that are too large", async () => {
    const limits = (body: string): Reply => (body === "large" ? { status: 429 } : { status: 200 });
    const { send, used } = await poolOf(["a", "b", "c"], { a: limits, b: limits, c: limits });
    for (const caller of callers.slice(0, 20)) await send(caller);
    const before = used.splice(0);
    for (let count = 0; count < 3; count++)
      expect(await send("large", { accountId: "other", body: "large" })).toBe(429);
    used.splice(0);
    for (const caller of callers.slice(0, 20)) await send(caller);
    expect(used).toEqual(before);
  });

  it("is paused for all once it limits two accounts, until a request is accepted", async () => {
    const { send, used } = await poolOf(["a", "b"], { a: { status: 429 } });
    let caller = 0;
    const nextOfA = async (accountId: string): Promise<void> => {
      do {
        used.splice(0);
        await send(`caller ${caller++}`, { accountId });
      } while (used[0] !== "a");
    };
    await nextOfA("1");
    const own = `caller ${caller - 1}`;
    used.splice(0);
    await send(own, { accountId: "2" });
    expect(used.splice(0)).toEqual(["a", "b"]);
    await send(own, { accountId: "3" });
    expect(used).toEqual(["b"]);
  });

  it("uses a paused key when the others refuse, and for all once that succeeds", async () => {
    const refused = new Set(["a", "b"]);
    const reply = (key: string) => (): Reply => ({ status: refused.has(key) ? 429 : 200 });
    const { send, used } = await poolOf(["a", "b"], { a: reply("a"), b: reply("b") });
    expect(await send("x", { accountId: "1" })).toBe(429);
    expect(await send("x", { accountId: "2" })).toBe(429);
    refused.clear();
    used.splice(0);
    for (const caller of callers.slice(0, 40)) expect(await send(caller, { accountId: "3" })).toBe(200);
    const first = new Set(used.slice(0, 1));
    expect(new Set(used)).toEqual(first);
    refused.add([...first][0]!);
    expect(await send("x", { accountId: "4" })).toBe(200);
    used.splice(0);
    for (const caller of callers.slice(0, 40)) await send(caller, { accountId: "5" });
    expect(new Set(used).size).toBe(2);
  });

  it.each([
    [{}, 10_000],
    [{ "retry-after": "86400" }, 60_000],
  ])("pauses a key for a bounded time (%j)", async (headers, pauseMs) => {
    const { send, pauses } = await poolOf(["a"], { a: { status: 429, headers } });
    expect(await send()).toBe(429);
    expect(pauses).toEqual([{ key: 1, status: 429, pauseMs }]);
  });

  it.each([400, 403, 404, 500])("does not try another key after %i", async (status) => {
    const { send, used } = await poolOf(["a", "b"], { a: { status }, b: { status } });
    expect(await send()).toBe(status);
    expect(used).toHaveLength(1);
  });
});
