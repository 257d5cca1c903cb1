import { appendFileSync } from "node:fs";
import { seed } from "./scale.ts";

/** What was counted or measured in a test, and what it may be at most or at least. */
export interface Figure {
  /** What it is of, in words: "simulated completions". */
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
 * Says a figure: in the test's output, and as a line of the file that `npm run faults` makes its table from. Throws when
 * it is not what it has to be, with the seed that leads there again.
 */
export function figure(said: Figure): void {
  const { value, atMost, atLeast } = said;
  const held = (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);
  const report = process.env["PARLEY_FAULTS_REPORT"];
  if (report !== undefined) appendFileSync(report, `${JSON.stringify({ ...said, held })}\n`);
  console.log(sentence(said));
  if (!held) throw new Error(`missed: ${sentence(said)}; seed ${seed()}`);
}
