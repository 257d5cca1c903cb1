import type { Load } from "../loads.ts";
import type { FormatName } from "./formats.ts";

/** Target of the load, and the expected end of its answers. */
export interface Target {
  readonly port: number;
  /** The API key. Floors ignore it. */
  readonly key: string;
  /** Keys to use in turn instead. */
  readonly keys?: readonly string[];
  /** Additional headers of each HTTP request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Format of HTTP requests. Default: OpenAI's chat completions. */
  readonly format?: FormatName;
  /** The gRPC request in base64. Default: the load's, in this checkout's contract. */
  readonly grpcRequest?: string;
  /** Last bytes of a streamed HTTP answer. */
  readonly lastWords: string;
}

/** Argument of the load generator's command line. */
export interface Assignment {
  readonly load: Load;
  readonly target: Target;
}

/** Calls one after another on one connection, or the load's number of calls at once. */
export interface Caller {
  /** Sends calls while `more` returns true; resolves after the last answer. */
  run(more: () => boolean): Promise<void>;
}

/** Results of the calls of one slice. */
export interface Tally {
  answers: number;
  /** Marks of correct answers. */
  marks: number;
  wrong: number;
  /** Of them, answers with status 503. */
  refused: number;
  /** Problem of the first wrong answer; a refusal only if there is no other. */
  firstWrong: string | undefined;
}

/** Results at the start of a slice. */
export function emptyTally(): Tally {
  return { answers: 0, marks: 0, wrong: 0, refused: 0, firstWrong: undefined };
}

/** Problem of a refusal for overload. */
const REFUSED = "status 503";

/** Counts one answer; `problem` is set when it is wrong. */
export function count(tally: Tally, marks: number, problem: string | undefined): void {
  if (problem === undefined) {
    tally.answers++;
    tally.marks += marks;
    return;
  }
  tally.wrong++;
  if (problem === REFUSED) tally.refused++;
  if (tally.firstWrong === undefined || tally.firstWrong === REFUSED) tally.firstWrong = problem;
}
