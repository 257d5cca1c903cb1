import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { PendingCalls } from "../../../src/inbound/http2/pending-calls.ts";

/** MAX_PENDING. */
const MOST = 4096;
const MIB = 1024 * 1024;

class Connection {
  isEnded = false;
  isServing = false;
  end(): void {
    this.isEnded = true;
  }
}

describe("pending calls", () => {
  const connections = (count: number): Connection[] => Array.from({ length: count }, () => new Connection());
  const addAll = (pending: PendingCalls<Connection>, connection: Connection, count: number): object[] => {
    const calls = Array.from({ length: count }, () => ({}));
    for (const call of calls) pending.add(connection, call);
    return calls;
  };
  const endedOf = (all: readonly Connection[]): boolean[] => all.map(({ isEnded }) => isEnded);

  it("beyond the limit end the oldest connection with many", () => {
    const pending = new PendingCalls<Connection>();
    const all = connections(4);
    const [honest, ...hostile] = all;
    addAll(pending, honest!, 2);
    for (const connection of hostile.slice(0, 2)) addAll(pending, connection, MOST / 2 - 1);
    expect(endedOf(all)).toEqual([false, false, false, false]);
    addAll(pending, hostile[2]!, 1);
    expect(endedOf(all)).toEqual([false, true, false, false]);
  });

  it("end the oldest connection with many unread bytes beyond their limit, whatever the number of calls", () => {
    const pending = new PendingCalls<Connection>();
    const all = connections(3);
    const [honest, first, second] = all;
    addAll(pending, honest!, 10);
    const call = {};
    pending.add(first!, call);
    pending.add(first!, call, 33 * MIB);
    pending.add(second!, {}, 31 * MIB);
    // Without effect: its answer has as many.
    pending.add(first!, call, 33 * MIB);
    expect(endedOf(all)).toEqual([false, false, false]);
    pending.add(honest!, {}, 1);
    expect(endedOf(all)).toEqual([false, true, false]);
    pending.add(honest!, {}, 20 * MIB);
    const read = {};
    pending.add(honest!, read, 12 * MIB);
    pending.remove(honest!, read);
    pending.add(honest!, {}, 12 * MIB);
    expect(endedOf(all)).toEqual([false, true, false]);
  });

  it("end a connection that serves a caller only when there is no other", () => {
    const pending = new PendingCalls<Connection>();
    const [serving, ...hostile] = connections(MOST);
    serving!.isServing = true;
    for (const connection of hostile) addAll(pending, connection, 1);
    addAll(pending, serving!, 2);
    expect(endedOf([serving!, hostile[0]!, hostile[1]!])).toEqual([false, true, false]);

    const full = new PendingCalls<Connection>();
    const [first, second] = connections(2);
    first!.isServing = second!.isServing = true;
    addAll(full, first!, MOST);
    addAll(full, second!, 1);
    expect(endedOf([first!, second!])).toEqual([true, false]);
  });

  it("make room when they are not pending any more, once each", () => {
    const pending = new PendingCalls<Connection>();
    const all = connections(2);
    const [first, ...others] = addAll(pending, all[0]!, MOST);
    pending.add(all[0]!, others[0]!);
    pending.remove(all[0]!, first!);
    pending.remove(all[0]!, first!);
    addAll(pending, all[1]!, 1);
    expect(endedOf(all)).toEqual([false, false]);
    addAll(pending, all[1]!, 1);
    expect(endedOf(all)).toEqual([true, false]);
  });

  it("are few on each further connection in an event loop turn with too many, because ended ones are not freed", async () => {
    const pending = new PendingCalls<Connection>();
    for (const connection of connections(12)) addAll(pending, connection, 1000);
    const [few, many, later] = connections(3);
    addAll(pending, few!, 8);
    addAll(pending, many!, 9);
    await setImmediate();
    addAll(pending, later!, 9);
    expect(endedOf([few!, many!, later!])).toEqual([false, true, false]);
  });
});
