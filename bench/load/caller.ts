import type { Load } from "../loads.ts";

/** Where the load goes, and what a right answer ends with there. */
export interface Target {
  readonly port: number;
  /** The API key. Floors ignore it. */
  readonly key: string;
  /** Keys to use in turn instead. */
  readonly keys?: readonly string[];
  /** More headers of each HTTP request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The last words of a streamed HTTP answer. */
  readonly lastWords: string;
}

/** What the load generator is told by its command line. */
export interface Assignment {
  readonly load: Load;
  readonly target: Target;
}

/** Calls one after another on one connection, or as many at once as the load says. */
export interface Caller {
  /** Makes calls until `more` says no; resolves when the last has been answered. */
  run(more: () => boolean): Promise<void>;
}

/** What became of the calls of one slice. */
export interface Tally {
  answers: number;
  /** Marks of right answers. */
  marks: number;
  wrong: number;
  /** What the first wrong answer had. */
  firstWrong: string | undefined;
}

/** Of a slice that has just begun. */
export function emptyTally(): Tally {
  return { answers: 0, marks: 0, wrong: 0, firstWrong: undefined };
}

/** Counts one answer; `problem` says what is wrong with it. */
export function count(tally: Tally, marks: number, problem: string | undefined): void {
  if (problem === undefined) {
    tally.answers++;
    tally.marks += marks;
    return;
  }
  tally.wrong++;
  tally.firstWrong ??= problem;
}
