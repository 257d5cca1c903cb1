import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectError } from "@connectrpc/connect";
import {
  AttemptOutcome,
  Code,
  CompletionAccumulator,
  type ErrorReasonName,
  ParleyClient,
  textDelta,
  textOf,
} from "@parley/client";
import { failure, gateway, parley, say, upstreamCalls, upstreamCloses } from "./support.js";

test("bad-request: names the field", async () => {
  const error = await failure(parley.completions.create({ ...say("Hello"), temperature: 9 }));
  assert.equal(error.code, Code.InvalidArgument);
  assert.equal(error.reason, "INVALID_REQUEST");
  assert.deepEqual(
    error.fieldViolations.map(({ field }) => field),
    ["temperature"],
  );
  assert.match(error.fieldViolations[0]!.description, /2/);
  assert.match(error.requestId!, /^req_/);
  assert.equal(error.retryable, false);
  assert.ok(error.cause instanceof ConnectError);
});

test("unauthenticated: a wrong key is refused, and is not in the error", async () => {
  const stranger = new ParleyClient({ address: gateway.address, apiKey: "sk_parley_wrong", plaintext: true });
  for (const call of [() => stranger.completions.create(say("Hello")), () => stranger.key.getCurrent()]) {
    const error = await failure(call());
    assert.equal(error.code, Code.Unauthenticated);
    assert.equal(error.reason, "UNAUTHENTICATED");
    assert.doesNotMatch(error.message, /sk_parley_wrong/);
  }
});

test("model-not-found: by create, stream and models.get", async () => {
  for (const call of [
    () => parley.completions.create(say("Hello", "no-such-model")),
    () => parley.completions.stream(say("Hello", "no-such-model")).completion(),
    () => parley.models.get("no-such-model"),
  ]) {
    const error = await failure(call());
    assert.equal(error.code, Code.NotFound);
    assert.equal(error.reason, "MODEL_NOT_FOUND" satisfies ErrorReasonName);
    assert.match(error.message, /no-such-model/);
  }
});

test("attempts-and-retry-info: says what was tried and when to come back", async () => {
  const startedAt = Date.now();
  const error = await failure(parley.completions.create(say("Hello", "overloaded"), { timeoutMs: 5000 }));
  assert.equal(error.code, Code.Unavailable);
  assert.equal(error.reason, "UPSTREAM_UNAVAILABLE");
  assert.ok(error.attempts.length > 0);
  assert.deepEqual([...new Set(error.attempts.map(({ model }) => model))], ["overloaded"]);
  assert.equal(error.attempts[0]?.httpStatusCode, 503);
  assert.equal(error.retryAfterMs, 7000);
  // The deadline comes before that.
  assert.equal(error.retryable, false);
  assert.ok(Date.now() - startedAt < 4000);
});

test("fallback: another model answers, and the report says so", async () => {
  const completion = await parley.completions.create({ ...say("Hello", "overloaded"), fallbackModels: ["spare"] });
  assert.equal(textOf(completion), "From the spare model.");
  assert.equal(completion.model, "spare");
  const { attempts } = completion.report!;
  assert.equal(attempts[0]?.model, "overloaded");
  assert.deepEqual([attempts.at(-1)?.model, attempts.at(-1)?.outcome], ["spare", AttemptOutcome.SERVED]);
});

test("deadline: ends the call here and at the provider", async () => {
  for (const call of [
    () => parley.completions.create(say("Hello", "silent"), { timeoutMs: 300, requestId: "req_late" }),
    () => parley.completions.stream(say("Hello", "silent"), { timeoutMs: 300, requestId: "req_late" }).completion(),
  ]) {
    const startedAt = Date.now();
    const error = await failure(call());
    assert.equal(error.code, Code.DeadlineExceeded);
    assert.equal(error.requestId, "req_late");
    assert.ok(Date.now() - startedAt < 2000);
    await upstreamCloses("silent");
  }
});

test("deadline: a signal of one throws its reason", async () => {
  const call = parley.completions.create(say("Hello", "silent"), { signal: AbortSignal.timeout(300) });
  await assert.rejects(call, { name: "TimeoutError" });
  await upstreamCloses("silent");
});

test("cancel: leaving the loop ends the call at the provider", async () => {
  const stream = parley.completions.stream(say("Go on", "endless"));
  let read = 0;
  for await (const chunk of stream) if (textDelta(chunk) !== "" && ++read === 3) break;
  assert.equal(read, 3);
  await upstreamCloses("endless");
  await assert.rejects(stream.completion(), /not whole/);
});

test("cancel: a signal ends a stream with its reason", async () => {
  const controller = new AbortController();
  const reason = new Error("Enough.");
  const read = async () => {
    for await (const chunk of parley.completions.stream(say("Go on", "endless"), { signal: controller.signal }))
      if (textDelta(chunk) !== "") controller.abort(reason);
  };
  await assert.rejects(read(), (error) => error === reason);
  await upstreamCloses("endless");
});

test("broken-stream: text first, then the error with its request ID", async () => {
  const stream = parley.completions.stream(say("Hello", "breaking"), { requestId: "req_breaking" });
  const accumulator = new CompletionAccumulator();
  const read = async () => {
    for await (const chunk of stream) accumulator.add(chunk);
  };
  const error = await failure(read());
  assert.equal(error.requestId, "req_breaking");
  assert.match(error.reason!, /^UPSTREAM_/);
  assert.equal(textOf(accumulator.completion), "The beginning of an answer");
  assert.equal(accumulator.isComplete, false);
  await assert.rejects(stream.completion(), /not whole/);
});

test("retry-policy: a completion whose fallbacks failed is not repeated", async () => {
  const models = ["overloaded", "overloaded-too"];
  const count = async () => (await Promise.all(models.map(upstreamCalls))).flat().length;
  const before = await count();
  const request = { ...say("Hello", "overloaded"), fallbackModels: ["overloaded-too"] };
  const error = await failure(parley.completions.create(request));
  assert.equal(error.code, Code.Unavailable);
  assert.equal(error.retryable, false);
  assert.deepEqual([...new Set(error.attempts.map(({ model }) => model))], models);
  // A second call of the gateway would have made as many again.
  assert.equal((await count()) - before, error.attempts.length);
});
