import { parseArgs } from "node:util";

/** What can be measured on its own. */
export const PARTS = [
  "translate",
  "accounting",
  "unary",
  "stream",
  "grpc",
  "image",
  "latency",
  "memory",
  "startup",
  "growth",
  "workers",
  "peers",
] as const;

/** Those that need neither server nor load. */
const IN_PROCESS: ReadonlySet<Part> = new Set(["translate", "accounting"]);

/** One of them. */
export type Part = (typeof PARTS)[number];

/** What the command line asks for. */
export interface Options {
  /** In the order of `PARTS`; all of them when none was named. */
  readonly parts: readonly Part[];
  /** Slices per contestant and load. */
  readonly rounds: number;
  /** Length of one slice. */
  readonly seconds: number;
  /** At most so long is each contestant warmed up. */
  readonly warmUpSeconds: number;
  /** Take the sizes that need many minutes. */
  readonly long: boolean;
  /** Write what was measured into docs/performance/, too. */
  readonly write: boolean;
  /** Take profiles of Parley under each load, instead of comparing it. */
  readonly profile: boolean;
  /** Another checkout of Parley: compare with it in place of the floors. */
  readonly against: string | undefined;
}

/** Reads the command line. Throws an Error with a text for people when it is wrong. */
export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "0.5" },
      "warm-up": { type: "string", default: "6" },
      long: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      against: { type: "string" },
    },
  });
  const unknown = positionals.find((name) => !PARTS.some((part) => part === name));
  if (unknown !== undefined) throw new Error(`There is no part called ${unknown}; there are ${PARTS.join(", ")}.`);
  return {
    parts: positionals.length === 0 ? PARTS : PARTS.filter((part) => positionals.includes(part)),
    rounds: Math.ceil(positiveNumber("rounds", values.rounds)),
    seconds: positiveNumber("seconds", values.seconds),
    warmUpSeconds: positiveNumber("warm-up", values["warm-up"]),
    long: values.long,
    write: values.write,
    profile: values.profile,
    against: values.against,
  };
}

/** Whether all that is asked for is measured in this process. */
export function needsNoServer(parts: readonly Part[]): boolean {
  return parts.every((part) => IN_PROCESS.has(part));
}

function positiveNumber(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0 && number <= 3600)) throw new Error(`--${name} must be a number above 0 and at most 3600.`);
  return number;
}
