import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { StrangerTurns } from "../../../src/inbound/http2/stranger-turns.ts";

/** Longer than strangers may take in a turn. */
const LONG_MS = 15;

class Connection {
  isRead = true;
  readonly _handle = {
    writeQueueSize: 0,
    readStart: (): void => void (this.isRead = true),
    readStop: (): void => void (this.isRead = false),
  };

  get socket(): Socket {
    return this as unknown as Socket;
  }
}

let turns: StrangerTurns;
let connections: Connection[];
beforeEach(() => {
  turns = new StrangerTurns();
  connections = Array.from({ length: 3 }, () => new Connection());
  for (const { socket } of connections) turns.add(socket);
});

/** Calls of a connection begin, and take a while. */
function take({ socket }: Connection, ms: number): void {
  turns.began(socket);
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
  turns.began(socket);
}

const read = (): readonly boolean[] => connections.map(({ isRead }) => isRead);

describe("connections of strangers", () => {
  it("are read in the next turn when calls of one have taken too long, which waits for another turn", async () => {
    take(connections[0]!, LONG_MS);
    expect(read()).toEqual([false, false, false]);
    await nextTurn();
    expect(read()).toEqual([false, true, true]);
    take(connections[1]!, LONG_MS);
    await nextTurn();
    expect(read()).toEqual([true, false, true]);
    await nextTurn();
    expect(read()).toEqual([true, true, true]);
  });

  it("are read while calls take little time, and when the others are of known callers", async () => {
    take(connections[0]!, 0);
    expect(read()).toEqual([true, true, true]);
    turns.remove(connections[0]!.socket);
    take(connections[0]!, LONG_MS);
    expect(read()).toEqual([true, true, true]);
    take(connections[1]!, LONG_MS);
    expect(read()).toEqual([true, false, false]);
    turns.remove(connections[1]!.socket);
    expect(read()).toEqual([true, true, false]);
  });

  it("are left to Node while something is written", () => {
    connections[1]!._handle.writeQueueSize = 1;
    take(connections[0]!, LONG_MS);
    expect(read()).toEqual([false, true, false]);
  });
});
