import { appendFileSync } from "node:fs";
import { seed } from "../../support/scale.ts";

/** A counted or measured value, with its bounds. */
export interface Figure {
  /** A name such as "simulated completions". */
  readonly name: string;
  readonly value: number;
  /** "ms", "MiB"; empty for a count. */
  readonly unit: string;
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** "simulated completions: 10000 (at least 10000)" */
export function sentence({ name, value, unit, atMost, atLeast }: Figure): string {
  const bounds = [
    ...(atMost === undefined ? [] : [` (at most ${atMost})`]),
    ...(atLeast === undefined ? [] : [` (at least ${atLeast})`]),
  ];
  return `${name}: ${value}${unit === "" ? "" : ` ${unit}`}${bounds.join("")}`;
}

/**
 * Prints a figure, and appends it to the file from which `npm run faults` makes its table. Throws when it is out of
 * bounds, with the seed that repeats it.
 */
export function figure(said: Figure): void {
  const { value, atMost, atLeast } = said;
  const held = (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);
  const report = process.env["PARLEY_FAULTS_REPORT"];
  if (report !== undefined) appendFileSync(report, `${JSON.stringify({ ...said, held })}\n`);
  console.log(sentence(said));
  if (!held) throw new Error(`missed: ${sentence(said)}; seed ${seed()}`);
}
