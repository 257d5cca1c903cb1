import { expect, it } from "vitest";
import { pulled } from "../../src/edge/pulled.ts";

it("gives what is emitted, in its order, and ends with the stream", async () => {
  const batches = pulled<string>(async (emit) => {
    for (const word of ["a", "b", "c"]) await emit(word);
  }, neverLeft);
  expect(await Array.fromAsync(batches)).toEqual(["a", "b", "c"]);
});

it("begins nothing before it is asked, and lets nothing be emitted before the last batch has been worked through", async () => {
  const emitted: string[] = [];
  const batches = pulled<string>(async (emit) => {
    for (const word of ["a", "b"]) {
      emitted.push(word);
      await emit(word);
    }
  }, neverLeft);
  expect(emitted).toEqual([]);
  await batches.next();
  await settled();
  expect(emitted).toEqual(["a"]);
  await batches.next();
  expect(emitted).toEqual(["a", "b"]);
});

it("throws what the stream throws, after what it emitted", async () => {
  const reason = new Error("cut");
  const batches = pulled<string>(async (emit) => {
    await emit("a");
    throw reason;
  }, neverLeft);
  expect(await batches.next()).toMatchObject({ value: "a" });
  await expect(batches.next()).rejects.toBe(reason);
});

it("makes a stream that nobody asks further end, and waits until it has", async () => {
  const leaving = new AbortController();
  let ended = false;
  const batches = pulled<string>(
    async (emit) => {
      await emit("a");
      await settled();
      ended = leaving.signal.aborted;
      throw new Error("left");
    },
    () => leaving.abort(),
  );
  for await (const _ of batches) break;
  expect(ended).toBe(true);
});

it("leaves a stream whose reader fails", async () => {
  const leaving = new AbortController();
  const batches = pulled<string>(
    (emit) => emit("a"),
    () => leaving.abort(),
  );
  await batches.next();
  const reason = new Error("cannot be written");
  await expect(batches.throw(reason)).rejects.toBe(reason);
  expect(leaving.signal.aborted).toBe(true);
});

function neverLeft(): void {
  throw new Error("was left");
}

const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
