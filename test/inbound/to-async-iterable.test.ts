import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { deltaChunk } from "../../src/core/chunks.ts";
import { Failure } from "../../src/core/failure.ts";
import { Calls, type OpenCall } from "../../src/inbound/calls.ts";
import { toAsyncIterable } from "../../src/inbound/to-async-iterable.ts";
import { FakeClock } from "../support/fake-clock.ts";

const say = (text: string): CompletionChunk[] => [
  deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value: text }),
];

const openCall = (): OpenCall => new Calls(new FakeClock()).open(undefined);

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

it("gives what is emitted, in its order, and ends with the stream", async () => {
  const call = openCall();
  const batches = toAsyncIterable(async (emit) => {
    for (const word of ["a", "b", "c"]) await emit(say(word));
  }, call);
  expect(await Array.fromAsync(batches)).toEqual([say("a"), say("b"), say("c")]);
  expect(call.signal.aborted).toBe(false);
  expect(getEventListeners(call.signal, "abort")).toEqual([]);
});

it("begins nothing before it is asked, and delays emits until the last batch has been consumed", async () => {
  const emitted: string[] = [];
  const batches = toAsyncIterable(async (emit) => {
    for (const word of ["a", "b"]) {
      emitted.push(word);
      await emit(say(word));
    }
  }, openCall());
  expect(emitted).toEqual([]);
  await batches.next();
  await settled();
  expect(emitted).toEqual(["a"]);
  await batches.next();
  expect(emitted).toEqual(["a", "b"]);
});

it("throws what the stream throws, after what it emitted", async () => {
  const reason = new Error("cut");
  const batches = toAsyncIterable(async (emit) => {
    await emit(say("a"));
    throw reason;
  }, openCall());
  expect(await batches.next()).toMatchObject({ value: say("a") });
  await expect(batches.next()).rejects.toBe(reason);
});

it("throws what the stream throws between two reads at the next read", async () => {
  const reason = new Error("too slow");
  const unhandled: unknown[] = [];
  const note = (rejection: unknown): void => void unhandled.push(rejection);
  process.on("unhandledRejection", note);
  try {
    const batches = toAsyncIterable(async (emit) => {
      void emit(say("a"));
      await settled();
      throw reason;
    }, openCall());
    expect(await batches.next()).toMatchObject({ value: say("a") });
    for (let turn = 0; turn < 3; turn++) await settled();
    expect(unhandled).toEqual([]);
    await expect(batches.next()).rejects.toBe(reason);
  } finally {
    process.off("unhandledRejection", note);
  }
});

it("ends a stream whose reader stops, even one with only its last chunks left, and waits for it", async () => {
  const call = openCall();
  let end: unknown;
  const batches = toAsyncIterable(async (emit) => {
    try {
      await emit(say("a"));
      await emit(say("the last"));
    } catch (reason) {
      await settled();
      end = reason;
      throw reason;
    }
  }, call);
  for await (const _ of batches) break;
  expect(end).toBe(call.signal.reason);
  expect(end).toMatchObject({ code: "cancelled" });
});

it("ends a stream whose reader fails, also when its call is over", async () => {
  const call = openCall();
  let end: unknown;
  const batches = toAsyncIterable(async (emit) => {
    await emit(say("a"))?.catch((reason: unknown) => (end = reason));
  }, call);
  await batches.next();
  call.close();
  const reason = new Error("cannot be written");
  await expect(batches.throw(reason)).rejects.toBe(reason);
  expect(end).toBeInstanceOf(Failure);
  expect(end).toMatchObject({ code: "cancelled" });
});
