import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code, CompletionService, EmbeddingService, ModelService, textInputs, textOf, textPart } from "@parley/client";
import { type Answer, failure, refuse, say, startServer } from "./support.js";

/** A server that answers completions, embeddings and models after this answer has had its calls. */
async function start(t: TestContext, answer: Answer) {
  const report = { event: { case: "report", value: {} } } as const;
  const text = "Well.";
  const server = await startServer({
    answer,
    routes: (router) => {
      router.service(CompletionService, {
        create: () => ({ choices: [{ message: { parts: [textPart(text)] } }], report: {} }),
        async *stream({ model }) {
          yield { event: { case: "partStart", value: { part: textPart("") } } };
          yield { event: { case: "partDelta", value: { content: { case: "text", value: text } } } };
          if (model !== "unreported") yield report;
        },
      });
      router.service(EmbeddingService, {
        create: ({ inputs }) => ({
          embeddings: inputs.map(({ kind }) => ({ values: [kind.value?.length ?? 0, 0.5] })),
        }),
      });
      router.service(ModelService, { get: ({ id }) => ({ id }) });
    },
  });
  t.after(() => server.stop());
  return server;
}

/** Refuses the first calls. */
function refusing(times: number, code: Code, metadata?: Record<string, string>): Answer {
  return (stream) => times-- > 0 && refuse(stream, code, metadata);
}

test("a call is repeated after the wait that the gateway asks for, within its deadline", async (t) => {
  for (const kind of ["create", "stream"] as const) {
    const server = await start(t, refusing(2, Code.ResourceExhausted, { "grpc-retry-pushback-ms": "100" }));
    const { completions } = server.client;
    const startedAt = Date.now();
    const options = { timeoutMs: 5000, requestId: "req_again" };
    const completion =
      kind === "create"
        ? await completions.create(say("Hello"), options)
        : await completions.stream(say("Hello"), options).completion();
    const elapsedMs = Date.now() - startedAt;
    assert.equal(textOf(completion), "Well.");
    assert.ok(elapsedMs >= 195 && elapsedMs < 900, `${elapsedMs} ms`);
    assert.deepEqual(
      server.calls.map((headers) => [headers["grpc-previous-rpc-attempts"], headers["x-request-id"]]),
      [undefined, "1", "2"].map((attempts) => [attempts, "req_again"]),
    );
    const timeouts = server.calls.map((headers) => Number.parseInt(String(headers["grpc-timeout"]), 10));
    assert.equal(timeouts[0], 5000);
    assert.ok(timeouts[2]! <= 4800 && timeouts[2]! > 4000, String(timeouts));
  }
});

test("embeddings are made in the order of the inputs, and repeated as completions are", async (t) => {
  const server = await start(t, refusing(1, Code.ResourceExhausted, { "grpc-retry-pushback-ms": "10" }));
  const { embeddings } = await server.client.embeddings.create({ model: "m", inputs: textInputs("tide", "sea") });
  assert.deepEqual(
    embeddings.map(({ values }) => values),
    [
      [4, 0.5],
      [3, 0.5],
    ],
  );
  assert.equal(server.calls.length, 2);
  assert.equal(server.calls[0]?.["grpc-timeout"], "900000m");
});

test("a call is repeated after the backoff of the service config, at most as often as that says", async (t) => {
  const server = await start(t, refusing(9, Code.Unavailable));
  const startedAt = Date.now();
  const error = await failure(server.client.models.get("m"));
  const elapsedMs = Date.now() - startedAt;
  assert.equal(error.code, Code.Unavailable);
  assert.equal(server.calls.length, 3);
  // 0.5 s and 1 s, each up to a fifth more or less.
  assert.ok(elapsedMs >= 1195 && elapsedMs < 2500, `${elapsedMs} ms`);
});

test("a call is not repeated when the gateway, its status or the deadline rules that out", async (t) => {
  for (const [code, metadata, retryable] of [
    [Code.Unavailable, { "grpc-retry-pushback-ms": "-1" }, false],
    [Code.Unavailable, { "grpc-retry-pushback-ms": "soon" }, false],
    [Code.Unavailable, { "grpc-retry-pushback-ms": "9000" }, true],
    // A message over a size limit of the gateway.
    [Code.ResourceExhausted, {}, false],
    [Code.Internal, {}, false],
  ] as const) {
    const server = await start(t, refusing(1, code, metadata));
    const startedAt = Date.now();
    const error = await failure(server.client.completions.create(say("Hello"), { timeoutMs: 3000 }));
    assert.equal(error.code, code);
    assert.equal(error.retryable, retryable);
    assert.equal(server.calls.length, 1);
    assert.ok(Date.now() - startedAt < 1000);
  }
});

test("the timeout of the service config bounds a call", async (t) => {
  const server = await start(t, () => false);
  await server.client.completions.create(say("Hello"));
  await server.client.completions.create(say("Hello"), { timeoutMs: 10_000_000 });
  await server.client.models.get("m");
  await server.client.models.get("m", { timeoutMs: 2000.5 });
  assert.deepEqual(
    server.calls.map((headers) => headers["grpc-timeout"]),
    ["900000m", "900000m", "30000m", "2001m"],
  );
  assert.equal((await failure(server.client.models.get("m", { timeoutMs: 0 }))).code, Code.DeadlineExceeded);
});

test("a signal ends the wait before a retry", async (t) => {
  const server = await start(t, refusing(1, Code.Unavailable, { "grpc-retry-pushback-ms": "5000" }));
  const startedAt = Date.now();
  const call = server.client.completions.create(say("Hello"), { signal: AbortSignal.timeout(200) });
  await assert.rejects(call, { name: "TimeoutError" });
  assert.ok(Date.now() - startedAt < 1000);
});

test("a message over the receive limit is refused, once", async (t) => {
  const server = await start(t, (stream) => {
    stream.respond({ "content-type": "application/grpc+proto" });
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(64 * 1024 * 1024 + 1, 1);
    stream.write(prefix);
    return true;
  });
  const error = await failure(server.client.completions.create(say("Hello")));
  assert.equal(error.code, Code.ResourceExhausted);
  assert.equal(error.retryable, false);
  assert.equal(server.calls.length, 1);
});

test("create says how much it can receive, unless the caller does", async (t) => {
  const limits: (number | undefined)[] = [];
  const server = await startServer({
    routes: (router) =>
      router.service(CompletionService, {
        create: ({ maxResponseBytes }) => (limits.push(maxResponseBytes), {}),
      }),
  });
  t.after(() => server.stop());
  await server.client.completions.create(say("Hello"));
  await server.client.completions.create({ ...say("Hello"), maxResponseBytes: 1000 });
  assert.deepEqual(limits, [64 * 1024 * 1024, 1000]);
});

test("a stream that ends without its report is an error", async (t) => {
  const server = await start(t, () => false);
  const error = await failure(server.client.completions.stream(say("Hello", "unreported")).completion());
  assert.equal(error.code, Code.Internal);
  assert.match(error.message, /without its report/);
});
