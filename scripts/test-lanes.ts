import { globSync } from "node:fs";
import { basename } from "node:path";
import { runTests, TWO_AT_A_TIME } from "./run-tests.ts";

/** How the test files of a folder are run. Files are named without `.test.ts`; those in no set run as the configuration says. */
export interface Lanes {
  readonly folder: string;
  /** Vitest's configuration. */
  readonly config: string;
  /** Files that mostly wait, and measure no times below a second: they run beside the others, two at a time. */
  readonly waiting: ReadonlySet<string>;
  /** Files that measure throughput or durations: they run last, with nothing beside them. */
  readonly alone: ReadonlySet<string>;
  /** Files that take long: they run only when they are named, or with `--long`. */
  readonly long: ReadonlySet<string>;
}

/** Arguments of a command that runs lanes. */
export interface LaneArguments {
  /** Runs only files whose names contain one of these words. Default: all but the long ones. */
  readonly words: readonly string[];
  /** Whether long files run, too. */
  readonly isLong: boolean;
  /** Further arguments of vitest. */
  readonly flags?: readonly string[];
}

/** Reads `[--long] [word …] [flag of vitest …]`. */
export function readLaneArguments(given: readonly string[]): LaneArguments {
  const isLong = given[0] === "--long";
  const rest = isLong ? given.slice(1) : given;
  const end = rest.findIndex((argument) => argument.startsWith("-"));
  return end < 0 ? { words: rest, isLong } : { words: rest.slice(0, end), isLong, flags: rest.slice(end) };
}

/**
 * Runs the files of a folder, with `PARLEY_TESTS_LONG=1` if it is long: the lanes beside each other, then those that run alone. Prints
 * the failures after each.
 */
export async function runLanes(lanes: Lanes, { words, isLong, flags = [] }: LaneArguments): Promise<void> {
  if (isLong) process.env["PARLEY_TESTS_LONG"] = "1";
  const nameOf = (file: string): string => basename(file, ".test.ts");
  const files = globSync(`${lanes.folder}/**/*.test.ts`).filter((file) =>
    words.length === 0 ? isLong || !lanes.long.has(nameOf(file)) : words.some((word) => file.includes(word)),
  );
  const common = ["--config", lanes.config, ...flags];
  // Vitest reports words without a matching file.
  if (files.length === 0) return runTests([...common, ...words]);
  const alone = files.filter((file) => lanes.alone.has(nameOf(file)));
  const waiting = files.filter((file) => lanes.waiting.has(nameOf(file)));
  const others = files.filter((file) => !alone.includes(file) && !waiting.includes(file));
  const run = (lane: readonly string[], more: readonly string[] = []): string[][] =>
    lane.length === 0 ? [] : [[...common, ...more, ...lane]];
  for (const phase of [[...run(others), ...run(waiting, TWO_AT_A_TIME)], run(alone)]) {
    const [first, ...beside] = phase;
    if (first !== undefined) await runTests(first, { beside });
  }
}
