import { afterEach, describe, expect, it } from "vitest";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk } from "../../../src/core/chunks.ts";
import { Failure } from "../../../src/core/failure.ts";
import type { Emit } from "../../../src/core/provider.ts";
import { connectUpstream, type Upstream } from "../../../src/providers/transport/http.ts";
import {
  type DialectCall,
  fetchStream,
  fetchWhole,
  type Refusal,
  type StreamReader,
} from "../../../src/providers/wire/response.ts";
import { batchesOf } from "../../support/batches.ts";
import { chunkOf, type RawServer, startRawServer } from "../transport/raw-server.ts";

const servers: RawServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function serve(...writes: string[]): Promise<{ server: RawServer; upstream: Upstream }> {
  const server = await startRawServer((socket) => socket.write(writes.join("")));
  servers.push(server);
  return {
    server,
    upstream: connectUpstream({ baseUrl: `http://127.0.0.1:${server.port}`, allowPrivate: true, connectMs: 500 }),
  };
}

const head = (status: number, type: string): string =>
  `HTTP/1.1 ${status} X\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`;
const whole = (status: number, type: string, body: string): string =>
  `${head(status, type)}${body === "" ? "" : chunkOf(body)}0\r\n\r\n`;
const LAST_CHUNK = "0\r\n\r\n";
const JSON_TYPE = "application/json; charset=utf-8";
const SSE_TYPE = "text/event-stream; charset=utf-8";

const call = (toFailure: (refusal: Refusal) => Failure = () => new Failure("internal", "unexpected")): DialectCall => ({
  path: "/x",
  headers: { "x-a": "b" },
  body: "{}",
  signal: new AbortController().signal,
  idleMs: 10_000,
  toFailure,
});

const text = (value: string): CompletionChunk => deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value });
const textsOf = (chunks: readonly CompletionChunk[]): unknown[] =>
  chunks.map(({ event }) => (event.case === "partDelta" ? event.value.content.value : event.case));

/** A dialect of its own: each event's data is text; "end" ends, "fail" fails, "break" is a fault of the reader. */
function wordReader(): StreamReader {
  let complete = false;
  return {
    get complete() {
      return complete;
    },
    read({ data }, out) {
      if (data === "end") complete = true;
      else if (data === "fail") throw new Failure("upstream_rate_limited", "Failed.");
      else if (data === "break") throw new TypeError("not a function");
      else if (data !== "") out.push(text(data));
    },
    end(out) {
      out.push(text("owed"));
    },
  };
}

function stream(upstream: Upstream, dialect: DialectCall = call()): AsyncGenerator<readonly CompletionChunk[]> {
  const leaving = new AbortController();
  const asked = { ...dialect, signal: AbortSignal.any([dialect.signal, leaving.signal]) };
  const toChunks = (json: unknown): CompletionChunk[] => [text(JSON.stringify(json))];
  return batchesOf(
    (emit) => fetchStream(upstream, asked, { reader: wordReader(), whole: toChunks, emit }),
    () => leaving.abort(new Failure("cancelled", "The caller left.")),
  );
}

/** What a stream says, batch by batch, and how it fails. */
async function collect(
  batches: AsyncIterable<readonly CompletionChunk[]>,
): Promise<{ said: unknown[][]; failure: unknown }> {
  const said: unknown[][] = [];
  try {
    for await (const batch of batches) said.push(textsOf(batch));
  } catch (failure) {
    return { said, failure };
  }
  return { said, failure: undefined };
}

const events = (...words: string[]): string => words.map((word) => `data: ${word}\n\n`).join("");

describe("a whole answer", () => {
  it("is asked for as JSON, and mapped", async () => {
    const { server, upstream } = await serve(whole(200, JSON_TYPE, '{"a":1}'));
    expect(await fetchWhole(upstream, call(), (json) => ({ json }))).toEqual({ json: { a: 1 } });
    expect(server.requests[0]).toMatch(/\r\naccept: application\/json\r\nx-a: b\r\n/);
  });

  it.each([
    ["no JSON", "<html>"],
    ["half of it", '{"a":'],
    ["nothing", ""],
  ])("trap 30: cannot be read when it is %s", async (_, body) => {
    const { upstream } = await serve(whole(200, JSON_TYPE, body));
    await expect(fetchWhole(upstream, call(), (json) => json)).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it("cannot be read when the mapping breaks on it, and fails as the mapping says when it says so", async () => {
    const { upstream } = await serve(whole(200, JSON_TYPE, "{}"));
    const broken = (): never => {
      throw new TypeError("not a function");
    };
    const failure = new Failure("upstream_rejected", "No.");
    await expect(fetchWhole(upstream, call(), broken)).rejects.toMatchObject({
      code: "upstream_protocol",
      cause: { name: "TypeError" },
    });
    await expect(
      fetchWhole(upstream, call(), () => {
        throw failure;
      }),
    ).rejects.toMatchObject({ code: "upstream_rejected", message: "No.", upstreamStatus: 200 });
  });
});

describe("a refusal", () => {
  const failure = new Failure("upstream_rejected", "No.");

  it.each([
    ["whole", (upstream: Upstream, dialect: DialectCall) => fetchWhole(upstream, dialect, () => "mapped")],
    ["streamed", (upstream: Upstream, dialect: DialectCall) => stream(upstream, dialect).next()],
  ])("of a %s answer is the dialect's to name", async (_, fetch) => {
    const { upstream } = await serve(whole(429, "text/html", "<p>slow down</p>"));
    const seen: Refusal[] = [];
    const dialect = call((refusal) => {
      seen.push(refusal);
      return failure;
    });
    await expect(fetch(upstream, dialect)).rejects.toMatchObject({ message: "No.", upstreamStatus: 429 });
    expect(seen).toMatchObject([{ status: 429, headers: { "content-type": "text/html" }, body: "<p>slow down</p>" }]);
  });

  it("may be a redirect, and is cut when it is long", async () => {
    const { upstream } = await serve(whole(302, "text/html", "a".repeat(100_000)));
    const seen: Refusal[] = [];
    const dialect = call((refusal) => {
      seen.push(refusal);
      return failure;
    });
    await expect(fetchWhole(upstream, dialect, () => "mapped")).rejects.toMatchObject({ upstreamStatus: 302 });
    expect(seen[0]).toMatchObject({ status: 302, body: "a".repeat(64 * 1024) });
  });

  it("is named by its status when its body does not end, and its connection is closed", async () => {
    const beginning = `${head(503, "text/html")}${chunkOf("<html>")}`;
    const silent = await serve(beginning);
    const trickling = await serve(beginning);
    const trickle = setInterval(() => trickling.server.sockets[0]?.write(chunkOf("a")), 100);
    const bodies: string[] = [];
    const dialect = call(({ body }) => {
      bodies.push(body.slice(0, 6));
      return failure;
    });
    const begunMs = performance.now();
    const refused = [silent, trickling].map(({ upstream }) => fetchWhole(upstream, dialect, () => "mapped"));
    for (const each of refused) await expect(each).rejects.toMatchObject({ message: "No.", upstreamStatus: 503 });
    expect(performance.now() - begunMs).toBeLessThan(dialect.idleMs / 2);
    expect(bodies).toEqual(["<html>", "<html>"]);
    for (const { server } of [silent, trickling]) await expect.poll(() => server.openCount()).toBe(0);
    clearInterval(trickle);
  });
});

describe("a compressed body", () => {
  it.each(["gzip", "br", "gzip, br"])("trap 12: is no answer: %s", async (encoding) => {
    const { upstream } = await serve(whole(200, `application/json\r\ncontent-encoding: ${encoding}`, "xyz"));
    await expect(fetchWhole(upstream, call(), () => "mapped")).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it("that is called identity is none", async () => {
    const { upstream } = await serve(whole(200, "application/json\r\ncontent-encoding: Identity", "{}"));
    expect(await fetchWhole(upstream, call(), () => "mapped")).toBe("mapped");
  });

  it("of a refusal leaves its status", async () => {
    const { upstream } = await serve(whole(429, "text/html\r\ncontent-encoding: gzip", "xyz"));
    const seen: Refusal[] = [];
    const dialect = call((refusal) => {
      seen.push(refusal);
      return new Failure("upstream_rate_limited", "Wait.");
    });
    await expect(fetchWhole(upstream, dialect, () => "mapped")).rejects.toMatchObject({ upstreamStatus: 429 });
    expect(seen).toMatchObject([{ status: 429, body: "" }]);
  });
});

describe("a whole answer's text", () => {
  it("may begin with a byte order mark", async () => {
    const { upstream } = await serve(whole(200, "application/json", "\ufeff{}"));
    expect(await fetchWhole(upstream, call(), () => "mapped")).toBe("mapped");
  });

  it("is not repeated in what is logged about it", async () => {
    const { upstream } = await serve(whole(200, "application/json", "The secret words"));
    const failure = await fetchWhole(upstream, call(), () => "mapped").catch((reason: unknown) => reason);
    expect(String((failure as Failure).cause)).not.toContain("secret");
  });
});

describe("a stream", () => {
  it("is asked for as one, and gives a batch for what one read found", async () => {
    const { server, upstream } = await serve(
      head(200, SSE_TYPE),
      chunkOf(events("a", "b")),
      chunkOf(events("end")),
      LAST_CHUNK,
    );
    const { said, failure } = await collect(stream(upstream));
    expect(failure).toBeUndefined();
    expect(said.flat()).toEqual(["a", "b"]);
    expect(said[0]).toEqual(["a", "b"]);
    expect(server.requests[0]).toContain("\r\naccept: text/event-stream\r\n");
  });

  it("gives no empty batch", async () => {
    const { server, upstream } = await serve(head(200, SSE_TYPE), chunkOf(": ping\n\n"));
    const batches = stream(upstream);
    const first = batches.next();
    await expect.poll(() => server.requests.length).toBe(1);
    server.sockets[0]!.write(chunkOf("data:\n\n"));
    server.sockets[0]!.write(chunkOf(events("a")));
    expect(textsOf((await first).value)).toEqual(["a"]);
    await batches.return(undefined);
  });

  it("trap 10: reads nothing after its end, and keeps the connection for the next", async () => {
    const { server, upstream } = await serve(head(200, SSE_TYPE), chunkOf(events("a", "end", "b")), LAST_CHUNK);
    expect(await collect(stream(upstream))).toEqual({ said: [["a"]], failure: undefined });
    await expect
      .poll(async () => {
        await collect(stream(upstream));
        return server.requests.length - server.sockets.length;
      })
      .toBeGreaterThan(0);
  });

  it("that ends with its body is the reader's to judge", async () => {
    const { upstream } = await serve(whole(200, SSE_TYPE, events("a")));
    expect((await collect(stream(upstream))).said.flat()).toEqual(["a", "owed"]);
  });

  it("trap 9: may lack the last blank line", async () => {
    const { upstream } = await serve(whole(200, SSE_TYPE, "data: a\n\ndata: b"));
    expect((await collect(stream(upstream))).said.flat()).toEqual(["a", "b", "owed"]);
  });

  it("gives what came before a failure, though both came in one read, and closes the connection", async () => {
    const { server, upstream } = await serve(head(200, SSE_TYPE), chunkOf(events("a", "fail", "b")));
    expect(await collect(stream(upstream))).toMatchObject({
      said: [["a"]],
      failure: { code: "upstream_rate_limited" },
    });
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("that breaks its reader fails as unreadable", async () => {
    const { upstream } = await serve(head(200, SSE_TYPE), chunkOf(events("a", "break")));
    expect(await collect(stream(upstream))).toMatchObject({
      said: [["a"]],
      failure: { code: "upstream_protocol", cause: { name: "TypeError" } },
    });
  });

  it("trap 20: that is cut fails after what was said", async () => {
    const server = await startRawServer((socket) => socket.end(head(200, SSE_TYPE) + chunkOf(events("a"))));
    servers.push(server);
    const upstream = connectUpstream({
      baseUrl: `http://127.0.0.1:${server.port}`,
      allowPrivate: true,
      connectMs: 500,
    });
    expect(await collect(stream(upstream))).toMatchObject({ said: [["a"]], failure: { code: "upstream_protocol" } });
  });

  it("ends with what its reader fails with, which is no fault of the provider's, and closes the connection", async () => {
    const { server, upstream } = await serve(head(200, SSE_TYPE), chunkOf(events("a")));
    const fault = new Failure("internal", "A fault at the entrance.");
    const emit = (): never => {
      throw fault;
    };
    const reading = fetchStream(upstream, call(), { reader: wordReader(), whole: () => [], emit });
    await expect(reading).rejects.toMatchObject({ code: "internal", message: fault.message });
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("is not read on before its reader has room", async () => {
    const { server, upstream } = await serve(head(200, SSE_TYPE), chunkOf(events("a")));
    const room = Promise.withResolvers<void>();
    const said: unknown[] = [];
    const emit: Emit = (batch) => {
      said.push(...textsOf(batch));
      return room.promise;
    };
    const reading = fetchStream(upstream, call(), { reader: wordReader(), whole: () => [], emit });
    await expect.poll(() => said).toEqual(["a"]);
    server.sockets[0]!.write(`${chunkOf(events("b", "end"))}0\r\n\r\n`);
    await new Promise((resolve) => void setTimeout(resolve, 50));
    expect(said).toEqual(["a"]);
    room.resolve();
    await reading;
    expect(said).toEqual(["a", "b"]);
  });

  it("trap 14: closes the connection when its reader leaves, and when its signal aborts", async () => {
    const { server, upstream } = await serve(head(200, SSE_TYPE), chunkOf(events("a")));
    for await (const batch of stream(upstream)) {
      expect(textsOf(batch)).toEqual(["a"]);
      break;
    }
    await expect.poll(() => server.openCount()).toBe(0);

    const gone = new Failure("cancelled", "The caller left.");
    const controller = new AbortController();
    const batches = stream(upstream, { ...call(), signal: controller.signal });
    await batches.next();
    const next = batches.next();
    controller.abort(gone);
    await expect(next).rejects.toBe(gone);
    await expect.poll(() => server.openCount()).toBe(0);
  });

  it("trap 11: may come as one whole answer", async () => {
    const { upstream } = await serve(whole(200, JSON_TYPE, '{"a":1}'));
    expect(await collect(stream(upstream))).toEqual({ said: [['{"a":1}']], failure: undefined });
  });

  it.each(["text/html", "text/plain", "application/jsonl", ""])(
    "trap 11: cannot be read as %j, and the connection is closed",
    async (type) => {
      const { server, upstream } = await serve(head(200, type), chunkOf("<html>"));
      expect(await collect(stream(upstream))).toMatchObject({ said: [], failure: { code: "upstream_protocol" } });
      await expect.poll(() => server.openCount()).toBe(0);
    },
  );
});
