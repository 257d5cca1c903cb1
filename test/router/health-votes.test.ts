import { describe, expect, it } from "vitest";
import { type HealthNote, MAX_NOTES, readHealthNotes, writeHealthNote } from "../../src/core/health-notes.ts";
import { downElsewhere } from "../../src/router/health-votes.ts";

const NOTHING: HealthNote = { down: [], up: [] };
const note = (down: string, up = ""): HealthNote => ({
  down: down.split(" ").filter(Boolean),
  up: up.split(" ").filter(Boolean),
});
const judged = (others: readonly HealthNote[], own = NOTHING): string[] => [...downElsewhere(others, own)];

describe("an upstream model is down elsewhere", () => {
  it("when a process says so that is served by another one", () => {
    expect(judged([note("a/m", "b/m")])).toEqual(["a/m"]);
  });

  it("not when the process that says so is served by none: its own network may be broken", () => {
    expect(judged([note("a/m b/m c/m")])).toEqual([]);
    expect(judged([note("a/m b/m c/m"), note("a/m b/m")])).toEqual([]);
  });

  it("not when as many are served by it, this process included", () => {
    expect(judged([note("a/m", "b/m"), note("", "a/m")])).toEqual([]);
    expect(judged([note("a/m", "b/m")], note("", "a/m"))).toEqual([]);
    expect(judged([note("a/m", "b/m"), note("a/m", "b/m"), note("", "a/m")])).toEqual(["a/m"]);
  });

  it("by one vote of a process, however often its note names it", () => {
    expect(judged([note("a/m a/m a/m", "b/m"), note("", "a/m")])).toEqual([]);
    expect(judged([note("__proto__ constructor", "b/m")])).toEqual(["__proto__", "constructor"]);
  });
});

describe("a note", () => {
  it("is read as it was written", () => {
    const written = note("a/m", "b/m c/m");
    expect(readHealthNotes([writeHealthNote(written)])).toEqual([written]);
  });

  it("is bounded when it is written and when it is read", () => {
    const names = Array.from({ length: 1_000 }, (_, number) => `provider/model ${number}`.padEnd(250));
    const huge = { down: ["x".repeat(300), ...names], up: names };
    expect(writeHealthNote(huge).length).toBeLessThan(133_000);
    const [read] = readHealthNotes([JSON.stringify(huge)]);
    expect([read!.down.length, read!.up.length]).toEqual([256, 256]);
    expect(readHealthNotes(Array.from({ length: 1_000 }, () => writeHealthNote(NOTHING)))).toHaveLength(MAX_NOTES);
  });

  it.each(["", "{", "null", "[]", '{"down":[1],"up":[]}', '{"down":"a/m","up":[]}', '{"up":[]}'])(
    "that is something else is left out: %s",
    (text) => {
      expect(readHealthNotes([text, writeHealthNote(NOTHING)])).toEqual([NOTHING]);
    },
  );
});
