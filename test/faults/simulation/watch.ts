/** What a broken promise is about. */
export type Promised = "chunks" | "ledger" | "limits" | "attempts" | "keys" | "end";

/** A promise that was not kept. */
export interface Breach {
  readonly promised: Promised;
  readonly what: string;
  /** The completion's number in its world; undefined for what concerns all. */
  readonly journey: number | undefined;
}

/** What a world's watchers tell: the breaches, and what happened around them. */
export interface Watch {
  /** Notes something that happened; `journey` is the completion it happened to. */
  note(what: string, journey?: number): void;
  breach(promised: Promised, what: string, journey?: number): void;
  /** Counts something, so that it can be seen that it happens at all. */
  count(what: string): void;
}

/** How many events around all completions are kept, and how many of each. */
const MAX_NOTES = 300;
const MAX_JOURNEY_NOTES = 120;
/** One broken promise breaks others. */
const MAX_BREACHES = 10;

/** A bounded memory of one world. */
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

  /** Each breach with the history of its completion, and what happened to all. */
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
