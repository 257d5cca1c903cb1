import type { UsageSums } from "../../gen/parley/console/v1/usage_pb.js";
import { formatMicroUsd, formatShortUsd } from "../format/money.ts";
import { formatCount, formatShort } from "../format/number.ts";
import type { Colour } from "./series.ts";

/** A measure shown over time. */
export interface Measure {
  readonly title: string;
  readonly of: (sums: UsageSums) => bigint;
  /** Parts of the measure, shown without grouping. */
  readonly parts: readonly (readonly [name: string, of: (sums: UsageSums) => bigint, colour: Colour])[];
  /** Compact format, for axis labels. */
  readonly formatShort: (value: number) => string;
  readonly format: (value: number) => string;
  /** Converts the value to a number in `csvUnit`. */
  readonly toCsv: (value: number) => number;
  readonly csvUnit: string;
}

/** Completions and refused requests. */
export const requestsOf = ({ completions, refused }: UsageSums): bigint => completions + refused;

/** Failed completions and refused requests. */
export const errorsOf = ({ failed, refused }: UsageSums): bigint => failed + refused;

export const tokensOf = ({ promptTokens, completionTokens }: UsageSums): bigint => promptTokens + completionTokens;

const unchanged = (value: number): number => value;

export const MEASURES: readonly Measure[] = [
  {
    title: "Requests",
    of: requestsOf,
    parts: [
      ["Success", ({ completions, failed }) => completions - failed, 1],
      ["Failed", ({ failed }) => failed, "failed"],
      ["Refused", ({ refused }) => refused, 2],
    ],
    formatShort,
    format: formatCount,
    toCsv: unchanged,
    csvUnit: "requests",
  },
  {
    title: "Tokens",
    of: tokensOf,
    parts: [
      ["Prompt tokens", ({ promptTokens }) => promptTokens, 1],
      ["Completion tokens", ({ completionTokens }) => completionTokens, 2],
    ],
    formatShort,
    format: formatCount,
    toCsv: unchanged,
    csvUnit: "tokens",
  },
  {
    title: "Cost",
    of: ({ costMicroUsd }) => costMicroUsd,
    parts: [["Cost", ({ costMicroUsd }) => costMicroUsd, 1]],
    formatShort: formatShortUsd,
    format: (value) => formatMicroUsd(BigInt(value)),
    toCsv: (value) => value / 1e6,
    csvUnit: "usd",
  },
];
