import { describe, expect, it } from "vitest";
import { toOwnService } from "../../../src/providers/credentials/own-key.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse } from "../../../src/providers/transport/http.ts";

const SECRET = "a-key-of-the-account";

/** An upstream that answers with a status, and notes what reaches it. */
function upstreamWith(status: number) {
  const headers: UpstreamRequest["headers"][] = [];
  const ended: string[] = [];
  const upstream: Upstream = {
    async post(request) {
      headers.push(request.headers);
      return { status, abandon: () => void ended.push("abandoned") } as unknown as UpstreamResponse;
    },
    async close() {
      ended.push("closed");
    },
  };
  return { upstream, headers, ended };
}

const configured = { authorization: "Basic operators-password", "x-team": "operators-team" };

const post = (upstream: Upstream, progress = { unsent: false }) => {
  const request = { path: "/", body: "{}", signal: new AbortController().signal, idleMs: 1, progress };
  return upstream.post({ ...request, headers: { "content-type": "application/json" } }, "*/*");
};

describe("the service with an account's own key", () => {
  it.each([
    ["x-api-key", SECRET],
    ["api-key", SECRET],
    ["authorization", `Bearer ${SECRET}`],
  ])("sends it as %s in place of the configured credentials, and keeps other headers", async (header, sent) => {
    const { upstream, headers } = upstreamWith(200);
    const service = toOwnService(upstream, { provider: "p", header, headers: configured, secret: SECRET });
    expect(service.headers).toEqual({ "x-team": "operators-team" });
    await post(service.upstream);
    expect(headers[0]).toMatchObject({ "content-type": "application/json", [header]: sent });
    const said = `${SECRET} operators-password operators-team`;
    expect(service.redact!(said)).toBe("[key] [key] [key]");
  });

  it("never reads a file", async () => {
    const { upstream, headers } = upstreamWith(200);
    const own = { provider: "p", header: "x-api-key", headers: {}, secret: "file:/etc/passwd" };
    await post(toOwnService(upstream, own).upstream);
    expect(headers[0]).toMatchObject({ "x-api-key": "file:/etc/passwd" });
  });

  it("says whose credential was refused, and ends the answer", async () => {
    const { upstream, ended } = upstreamWith(401);
    const { upstream: own } = toOwnService(upstream, { provider: "p", header: "api-key", headers: {}, secret: SECRET });
    await expect(post(own)).rejects.toMatchObject({
      code: "upstream_refused_us",
      message: "The provider p refused this account's own credential.",
      upstreamStatus: 401,
      refused: true,
    });
    expect(ended).toEqual(["abandoned"]);
  });

  it("that cannot be decrypted sends nothing, and costs nothing", async () => {
    const { upstream, headers } = upstreamWith(200);
    const own = { provider: "p", header: "api-key", headers: configured, secret: undefined };
    const progress = { unsent: false };
    await expect(post(toOwnService(upstream, own).upstream, progress)).rejects.toMatchObject({
      code: "upstream_refused_us",
    });
    expect([headers, progress.unsent]).toEqual([[], true]);
  });

  it("does not close the connections, which others use", async () => {
    const { upstream, ended } = upstreamWith(200);
    await toOwnService(upstream, { provider: "p", header: "api-key", headers: {}, secret: SECRET }).upstream.close();
    expect(ended).toEqual([]);
  });
});
