import { EventEmitter, getEventListeners } from "node:events";
import { beforeEach, expect, it } from "vitest";
import { Calls, type OpenCall } from "../../src/inbound/calls.ts";
import { drained, WRITE_STALL_MS } from "../../src/inbound/drain.ts";
import { FakeClock } from "../support/fake-clock.ts";

let clock: FakeClock;
let call: OpenCall;
let sink: EventEmitter;

beforeEach(() => {
  clock = new FakeClock();
  call = new Calls(clock).open(undefined);
  sink = new EventEmitter();
});

function expectNothingLeft(): void {
  expect(sink.listenerCount("drain")).toBe(0);
  expect(getEventListeners(call.signal, "abort")).toEqual([]);
  expect(clock.pending).toBe(0);
}

it("goes on when the caller has read enough", async () => {
  const wait = drained(sink, { clock, call, bytes: 0 });
  await clock.pass(WRITE_STALL_MS - 1);
  sink.emit("drain");
  await expect(wait).resolves.toBeUndefined();
  expectNothingLeft();
});

it("ends when the caller reads nothing", async () => {
  const wait = drained(sink, { clock, call, bytes: 0 }).catch((reason: unknown) => reason);
  await clock.pass(WRITE_STALL_MS);
  expect(await wait).toMatchObject({ code: "cancelled" });
  expectNothingLeft();
});

it("ends when the caller leaves", async () => {
  const wait = drained(sink, { clock, call, bytes: 0 }).catch((reason: unknown) => reason);
  call.leave();
  expect(await wait).toMatchObject({ code: "cancelled" });
  expectNothingLeft();
});

it("does not begin when the caller has left already", async () => {
  call.leave();
  await expect(drained(sink, { clock, call, bytes: 0 })).rejects.toMatchObject({ code: "cancelled" });
  expectNothingLeft();
});
