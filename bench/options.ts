import { parseArgs } from "node:util";

/** Names of the parts on the command line. */
export const PARTS = [
  "translate",
  "accounting",
  "unary",
  "stream",
  "grpc",
  "image",
  "formats",
  "targets",
  "latency",
  "open-loop",
  "closed-loops",
  "bursts",
  "pauses",
  "overload",
  "cold-start",
  "memory",
  "startup",
  "growth",
  "workers",
  "peers",
] as const;

/** Parts without servers and load generators. */
const IN_PROCESS: ReadonlySet<Part> = new Set(["translate", "accounting"]);

/** One part. */
export type Part = (typeof PARTS)[number];

/** Options of the command line. */
export interface Options {
  /** In the order of `PARTS`; all of them when none was named. */
  readonly parts: readonly Part[];
  /** Slices per contestant and load. */
  readonly rounds: number;
  /** Length of one slice. */
  readonly seconds: number;
  /** Maximum warm-up of each contestant. */
  readonly warmUpSeconds: number;
  /** Use the larger sizes, which take many minutes. */
  readonly long: boolean;
  /** Also write the results to docs/performance/. */
  readonly write: boolean;
  /** Take profiles of Parley under each load, instead of comparing it. */
  readonly profile: boolean;
  /** Folder of another checkout of Parley, compared instead of the floors. */
  readonly against: string | undefined;
}

/** Reads the command line. Throws an Error with a readable message. */
export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "0.5" },
      "warm-up": { type: "string", default: "20" },
      long: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      against: { type: "string" },
    },
  });
  const unknown = positionals.find((name) => !PARTS.some((part) => part === name));
  if (unknown !== undefined) throw new Error(`Unknown part ${unknown}; known parts: ${PARTS.join(", ")}.`);
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

/** Whether all requested parts run in this process. */
export function needsNoServer(parts: readonly Part[]): boolean {
  return parts.every((part) => IN_PROCESS.has(part));
}

function positiveNumber(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0 && number <= 3600)) throw new Error(`--${name} must be a number above 0 and at most 3600.`);
  return number;
}
