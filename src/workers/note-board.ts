import type { Clock } from "../core/clock.ts";
import { NOTE_LASTS_MS } from "../core/health-notes.ts";

/** The latest note of each worker, in their parent. */
export class NoteBoard {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #notes = new Map<string, { readonly text: string; readonly atMs: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Replaces the note of `name`; returns those of the others. */
  exchange(name: string, text: string): string[] {
    const atMs = this.#clock.monotonic();
    this.#notes.set(name, { text, atMs });
    return [...this.#notes].flatMap(([other, note]) =>
      other !== name && atMs - note.atMs <= NOTE_LASTS_MS ? [note.text] : [],
    );
  }

  /** Removes the note of a worker that has ended. */
  leave(name: string): void {
    this.#notes.delete(name);
  }
}
