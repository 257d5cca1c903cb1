import { afterEach, describe, expect, it } from "vitest";
import { connectUpstream, UNLIMITED, type Upstream } from "../../../src/providers/transport/http.ts";
import { SocketLimit } from "../../../src/providers/transport/socket-limit.ts";
import { toTransportFailure } from "../../../src/providers/transport/transport-failure.ts";
import { startRawServer } from "./raw-server.ts";

const opened: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0)) await part.stop();
});

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** Two providers that share a limit of two connections; a request for `/held` is not answered. */
async function createWorld() {
  const told = { exhausted: 0 };
  const sockets = new SocketLimit({ max: 2, exhausted: () => (told.exhausted += 1) });
  const serve = async () => {
    const server = await startRawServer((socket, request) => void (request.includes("/held") || socket.write(OK)));
    opened.push(server);
    const baseUrl = `http://127.0.0.1:${server.port}`;
    return connectUpstream({ baseUrl, allowPrivate: true, connectMs: 1000, connections: UNLIMITED, sockets });
  };
  return { told, first: await serve(), second: await serve() };
}

const post = (upstream: Upstream, path: string, signal = new AbortController().signal) =>
  upstream.post({ path, headers: {}, body: "{}", signal, idleMs: 10_000 }, "application/json");

describe("connections to all providers", () => {
  it("that have no request are closed for those to another provider", async () => {
    const { first, second, told } = await createWorld();
    await Promise.all([post(first, "/x"), post(first, "/x")].map(async (sent) => (await sent).body()));
    for (const one of [post(second, "/x"), post(second, "/x")]) expect((await one).status).toBe(200);
    expect(told.exhausted).toBe(0);
  });

  it("that all have requests leave a further one without, which is not the provider's fault", async () => {
    const { first, second, told } = await createWorld();
    const caller = new AbortController();
    const held = [post(first, "/held", caller.signal), post(first, "/held", caller.signal)];
    await expect(post(second, "/x")).rejects.toMatchObject({
      code: "upstream_unavailable",
      requestBound: true,
      transient: false,
      message: "The gateway has no file descriptor left for a connection to the upstream provider.",
    });
    expect(told.exhausted).toBe(1);
    caller.abort(new Error("left"));
    await Promise.allSettled(held);
    expect((await post(second, "/x")).status).toBe(200);
  });
});

it.each(["EMFILE", "ENFILE"])("a connection that the system refuses with %s is not the provider's fault", (code) => {
  const error = Object.assign(new Error(`connect ${code} 192.0.2.1:443`), { code });
  const failure = toTransportFailure(error, { answered: false, sentBytes: 100 });
  expect(failure).toMatchObject({ code: "upstream_unavailable", requestBound: true, transient: false });
});
