import { expect, it } from "vitest";
import { NOTE_LASTS_MS } from "../../src/core/health-notes.ts";
import { NoteBoard } from "../../src/workers/note-board.ts";
import { FakeClock } from "../support/fake-clock.ts";

it("has the latest note of each other worker, until that ends or writes no more", () => {
  const clock = new FakeClock();
  const board = new NoteBoard(clock);
  expect(board.exchange("one", "1")).toEqual([]);
  expect(board.exchange("two", "2")).toEqual(["1"]);
  expect(board.exchange("three", "3")).toEqual(["1", "2"]);
  board.leave("two");
  expect(board.exchange("one", "4")).toEqual(["3"]);
  clock.advance(NOTE_LASTS_MS + 1);
  expect(board.exchange("three", "5")).toEqual([]);
});
