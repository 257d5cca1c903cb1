import { formatTable } from "../report.ts";

/** Figures of one scenario, ready to print. */
export interface ScenarioTable {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Wrong answers, which make figures invalid. Refusals are none: they have a column. */
  readonly problems: readonly string[];
}

/** A table for a terminal. */
export function formatScenario({ title, head, rows, problems }: ScenarioTable): string {
  return [title, ...formatTable([head, ...rows]), ...problems.map((problem) => `  ! ${problem}`)].join("\n");
}

/** A whole number with separators. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** A time in milliseconds. */
export function inMs(value: number): string {
  return value.toFixed(value < 100 ? 2 : 0);
}
