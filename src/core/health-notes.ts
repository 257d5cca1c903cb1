/** Health of upstream models as one process sees it, each named `provider/upstream model`. */
export interface HealthNote {
  /** Models with an open circuit breaker. */
  readonly down: readonly string[];
  /** Models that served this process in the last seconds, the latest first. */
  readonly up: readonly string[];
}

/** Port: the latest note of each process of an installation. */
export interface HealthNotes {
  /**
   * Replaces this process's note. Resolves with the notes of other processes that are younger than NOTE_LASTS_MS. Rejects while
   * the store is unavailable.
   */
  exchange(note: HealthNote): Promise<readonly HealthNote[]>;
}

/** TTL of a note: the note of a process that has ended, or cannot write any more, expires. */
export const NOTE_LASTS_MS = 10_000;

/** Limits: notes that are read, models in each list of a note, and characters of a model's name. */
export const MAX_NOTES = 256;
const MAX_MODELS = 256;
const MAX_CHARS = 256;

/** Writes a note as text of at most 133 KB. */
export function writeHealthNote({ down, up }: HealthNote): string {
  return JSON.stringify({ down: bounded(down), up: bounded(up) });
}

/** Reads notes. Leaves out those without the expected shape, which another version may have written. */
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
