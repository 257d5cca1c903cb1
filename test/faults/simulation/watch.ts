/** Kinds of invariants. */
export type Promised = "chunks" | "ledger" | "limits" | "attempts" | "keys" | "end";

/** A violated invariant. */
export interface Breach {
  readonly promised: Promised;
  readonly what: string;
  /** Number of the completion in its world; undefined if it concerns all. */
  readonly journey: number | undefined;
}

/** Receives breaches and events of a world. */
export interface Watch {
  /** Records an event; `journey` is its completion. */
  note(what: string, journey?: number): void;
  breach(promised: Promised, what: string, journey?: number): void;
  /** Counts an event, so that runs can require it. */
  count(what: string): void;
}

/** Number of events kept of the world and of each completion. */
const MAX_NOTES = 300;
const MAX_JOURNEY_NOTES = 120;
/** Number of described breaches; one breach causes others. */
const MAX_BREACHES = 10;

/** Bounded event log of one world. */
export class Journal implements Watch {
  readonly breaches: Breach[] = [];
  readonly counts: Map<string, number>;
  readonly #nowMs: () => number;
  readonly #world: string[] = [];
  readonly #journeys = new Map<number, string[]>();

  constructor(nowMs: () => number, counts: Map<string, number>) {
    this.#nowMs = nowMs;
    this.counts = counts;
  }

  note(what: string, journey?: number): void {
    const line = `${this.#nowMs()} ${what}`;
    if (journey === undefined) {
      this.#world.push(line);
      if (this.#world.length > MAX_NOTES) this.#world.shift();
      return;
    }
    const lines = this.#journeys.get(journey);
    if (lines === undefined) this.#journeys.set(journey, [line]);
    else if (lines.length < MAX_JOURNEY_NOTES) lines.push(line);
  }

  breach(promised: Promised, what: string, journey?: number): void {
    this.note(`BROKEN (${promised}): ${what}`, journey);
    if (this.breaches.length < MAX_BREACHES) this.breaches.push({ promised, what, journey });
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Formats each breach with the events of its completion and of the world. */
  tell(): string {
    const seen = new Set(this.breaches.map(({ journey }) => journey));
    const stories = [...seen].map((journey) =>
      journey === undefined
        ? ["  around all completions:", ...this.#world]
        : [`  completion ${journey}:`, ...(this.#journeys.get(journey) ?? [])],
    );
    if (!seen.has(undefined)) stories.push(["  around all completions:", ...this.#world]);
    const summary = this.breaches.map(
      ({ promised, what, journey }) => `  ${promised}${journey === undefined ? "" : ` of ${journey}`}: ${what}`,
    );
    return [...summary, ...stories.flatMap(([title, ...lines]) => [title, ...lines.map((line) => `    ${line}`)])].join(
      "\n",
    );
  }
}
