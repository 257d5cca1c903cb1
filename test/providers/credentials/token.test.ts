import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import type { UpstreamRequest } from "../../../src/providers/transport/http.ts";
import { authorized } from "../../../src/providers/credentials/credential.ts";
import { type AccessToken, refusedToken, TokenCredential } from "../../../src/providers/credentials/token.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A credential on a clock that stands still, with fetches that end when the test says so. */
function create(limitMs = 60_000) {
  const clock = { nowMs: 1_000_000 };
  const fetches: PromiseWithResolvers<AccessToken>[] = [];
  const fetch = (): Promise<AccessToken> => {
    const next = Promise.withResolvers<AccessToken>();
    fetches.push(next);
    return next.promise;
  };
  const credential = new TokenCredential({ fetch, limitMs, now: () => clock.nowMs });
  const issue = async (token: string, lifeMs = HOUR_MS): Promise<void> => {
    fetches.at(-1)!.resolve({ token, expiresMs: clock.nowMs + lifeMs });
    await new Promise(setImmediate);
  };
  const ask = (signal = new AbortController().signal) => credential.authorize({ signal });
  return { credential, clock, fetches, issue, ask };
}

const bearer = (token: string): object => ({ authorization: `Bearer ${token}` });

describe("a token", () => {
  it("is fetched once for all requests that wait, and then at hand", async () => {
    const { credential, fetches, issue, ask } = create();
    const asked = [ask(), ask(), ask()].map(async (headers) => headers);
    await issue("one");
    expect(await Promise.all(asked)).toEqual([bearer("one"), bearer("one"), bearer("one")]);
    expect(fetches).toHaveLength(1);
    expect(ask()).toEqual(bearer("one"));
    expect(ask()).toBe(ask());
    expect(credential.secrets()).toEqual(["one"]);
  });

  it("is replaced before its end while the old one serves", async () => {
    const { credential, clock, fetches, issue, ask } = create();
    void ask();
    await issue("one");
    clock.nowMs += HOUR_MS - 6 * MINUTE_MS;
    expect(ask()).toEqual(bearer("one"));
    expect(fetches).toHaveLength(1);
    clock.nowMs += 2 * MINUTE_MS;
    expect([ask(), ask()]).toEqual([bearer("one"), bearer("one")]);
    expect(fetches).toHaveLength(2);
    await issue("two");
    expect(ask()).toEqual(bearer("two"));
    expect(credential.secrets()).toEqual(["two", "one"]);
  });

  it("serves to its end when it cannot be replaced, with a pause between tries", async () => {
    const { clock, fetches, issue, ask } = create();
    void ask();
    await issue("one");
    clock.nowMs += HOUR_MS - 4 * MINUTE_MS;
    expect(ask()).toEqual(bearer("one"));
    fetches.at(-1)!.reject(refusedToken("no"));
    await new Promise(setImmediate);
    expect(ask()).toEqual(bearer("one"));
    expect(fetches).toHaveLength(2);
    clock.nowMs += 11_000;
    expect(ask()).toEqual(bearer("one"));
    expect(fetches).toHaveLength(3);
    clock.nowMs += 4 * MINUTE_MS - 31_000;
    const waiting = ask();
    expect(waiting).toBeInstanceOf(Promise);
    fetches.at(-1)!.reject(refusedToken("no"));
    await expect(waiting).rejects.toMatchObject({ code: "upstream_refused_us" });
  });

  it("that lives for seconds is replaced at half of its life", async () => {
    const { clock, fetches, issue, ask } = create();
    void ask();
    await issue("one", 2 * MINUTE_MS);
    clock.nowMs += 59_000;
    void ask();
    expect(fetches).toHaveLength(1);
    clock.nowMs += 1_000;
    void ask();
    expect(fetches).toHaveLength(2);
  });

  it("is not waited for longer than the limit, and the next request asks again", async () => {
    const { fetches, issue, ask } = create(1);
    await expect(ask()).rejects.toMatchObject({
      code: "upstream_unavailable",
      transient: true,
      cause: { message: "There was no token in 0.001 s (timeouts.connect_ms)." },
    });
    const again = ask();
    expect(fetches).toHaveLength(2);
    await issue("one");
    expect(await again).toEqual(bearer("one"));
  });

  it("is not waited for after the caller has left, while others wait on", async () => {
    const { issue, ask } = create();
    const leaving = new AbortController();
    const [left, stays] = [ask(leaving.signal), ask()];
    leaving.abort(new Failure("cancelled", "gone"));
    await expect(left).rejects.toMatchObject({ code: "cancelled" });
    await issue("one");
    expect(await stays).toEqual(bearer("one"));
    expect(ask(leaving.signal)).toEqual(bearer("one"));
  });
});

describe("a refused token", () => {
  const statusOf = async (authorization: string | undefined, accepted: string): Promise<number> =>
    authorization === `Bearer ${accepted}` ? 200 : 401;

  function connect(credential: TokenCredential, accepted: string) {
    const sent: (string | undefined)[] = [];
    const upstream = authorized(
      {
        async post({ headers }) {
          sent.push(headers["authorization"]);
          const status = await statusOf(headers["authorization"], accepted);
          return { status, headers: {}, abandon: () => {} } as never;
        },
        close: async () => {},
      },
      credential,
    );
    const request = { path: "/", headers: {}, body: "", idleMs: 1, signal: new AbortController().signal };
    return { sent, post: () => upstream.post(request satisfies UpstreamRequest, "*/*") };
  }

  it("is replaced, and the request sent once more", async () => {
    const { credential, clock, fetches, issue, ask } = create();
    void ask();
    await issue("one");
    clock.nowMs += MINUTE_MS;
    const { sent, post } = connect(credential, "two");
    const answered = Promise.all([post(), post()]);
    await expect.poll(() => fetches.length).toBe(2);
    await issue("two");
    expect((await answered).map(({ status }) => status)).toEqual([200, 200]);
    expect(sent).toEqual(["Bearer one", "Bearer one", "Bearer two", "Bearer two"]);
  });

  it("that is new is refused for another reason, and not replaced", async () => {
    const { credential, fetches, issue, ask } = create();
    void ask();
    await issue("one");
    const { sent, post } = connect(credential, "two");
    expect((await post()).status).toBe(401);
    expect([sent, fetches.length]).toEqual([["Bearer one"], 1]);
  });
});
