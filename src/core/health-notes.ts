/** What one process has lately met at upstream models, by `provider/upstream model`. */
export interface HealthNote {
  /** With an open circuit breaker. */
  readonly down: readonly string[];
  /** That served it in the last seconds, the latest first. */
  readonly up: readonly string[];
}

/** Port: the latest note of each process of an installation. */
export interface HealthNotes {
  /**
   * Replaces this process's note. Resolves with those of the others that were written in the last NOTE_LASTS_MS. Rejects while they
   * cannot be exchanged.
   */
  exchange(note: HealthNote): Promise<readonly HealthNote[]>;
}

/** Life of a note: that of a process that has ended, or cannot write any more, counts no longer. */
export const NOTE_LASTS_MS = 10_000;

/** Notes that are read, models in each of their lists, and characters of a model. */
export const MAX_NOTES = 256;
const MAX_MODELS = 256;
const MAX_CHARS = 256;

/** Writes a note as text of at most 133 KB. */
export function writeHealthNote({ down, up }: HealthNote): string {
  return JSON.stringify({ down: bounded(down), up: bounded(up) });
}

/** Reads notes, without those that another version may have written. */
export function readHealthNotes(texts: readonly string[]): HealthNote[] {
  return texts.slice(0, MAX_NOTES).flatMap((text) => {
    try {
      const { down, up } = JSON.parse(text) as Partial<Record<keyof HealthNote, unknown>>;
      return isNames(down) && isNames(up) ? [{ down: bounded(down), up: bounded(up) }] : [];
    } catch {
      return [];
    }
  });
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

function bounded(names: readonly string[]): readonly string[] {
  return names.filter(({ length }) => length <= MAX_CHARS).slice(0, MAX_MODELS);
}
