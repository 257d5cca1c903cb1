import { invalidField } from "../core/failure.ts";

/** When alerts are opened. A threshold of 0, and an empty list, switches its rule off. */
export interface Thresholds {
  /** Shares of a budget, ascending. */
  readonly budgetPercent: readonly number[];
  /** Days before a key expires. */
  readonly keyExpiryDays: number;
  /** Share of failed requests in ten minutes. */
  readonly errorPercent: number;
  /** Requests in ten minutes below which error rate and latency are not evaluated. */
  readonly minRequests: number;
  /** Times the usual 95th percentile. */
  readonly latencyFactor: number;
  /** Times the median of the same hour in the last 14 days. */
  readonly spendFactor: number;
  /** Spending of an hour below which it is never unusual. */
  readonly spendMinimumUsd: number;
}

export const DEFAULT_THRESHOLDS: Thresholds = {
  budgetPercent: [50, 80, 100],
  keyExpiryDays: 7,
  errorPercent: 20,
  minRequests: 20,
  latencyFactor: 3,
  spendFactor: 5,
  spendMinimumUsd: 10,
};

type NumberName = Exclude<keyof Thresholds, "budgetPercent">;

/** Ranges of the numbers, for the configuration too. */
const THRESHOLD_RANGES: Readonly<Record<NumberName, readonly [min: number, max: number]>> = {
  keyExpiryDays: [0, 365],
  errorPercent: [0, 100],
  minRequests: [1, 1_000_000],
  latencyFactor: [0, 1_000],
  spendFactor: [0, 1_000],
  spendMinimumUsd: [0, 100_000],
};

const MAX_PERCENTS = 10;
const MAX_PERCENT = 1_000;

/** The thresholds in force, and which of them the configuration file sets. */
export interface ThresholdsInForce {
  readonly values: Thresholds;
  /** Thresholds that the configuration file sets: the dashboard cannot change them. */
  readonly ofFile: ReadonlySet<keyof Thresholds>;
}

/** The file's, then those set in the dashboard, then the defaults. */
export function thresholdsInForce(ofFile: Partial<Thresholds>, stored: Partial<Thresholds>): ThresholdsInForce {
  const names = new Set(Object.keys(ofFile) as (keyof Thresholds)[]);
  return { values: { ...DEFAULT_THRESHOLDS, ...stored, ...ofFile }, ofFile: names };
}

/** The name of a threshold as in the configuration and the API. */
export function thresholdField(name: keyof Thresholds): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Throws `invalid_request` for a value out of range. */
export function checkThresholds(values: Partial<Thresholds>): void {
  for (const [name, [min, max]] of Object.entries(THRESHOLD_RANGES) as [NumberName, readonly [number, number]][]) {
    const value = values[name];
    if (value === undefined || (Number.isFinite(value) && value >= min && value <= max)) continue;
    throw invalidField(`thresholds.${thresholdField(name)}`, `must be a number from ${min} to ${max}`);
  }
  const { budgetPercent } = values;
  if (budgetPercent === undefined) return;
  const areAscending = budgetPercent.every((percent, index) => index === 0 || percent > budgetPercent[index - 1]!);
  const areValid = budgetPercent.every(
    (percent) => Number.isInteger(percent) && percent >= 1 && percent <= MAX_PERCENT,
  );
  if (areValid && areAscending && budgetPercent.length <= MAX_PERCENTS) return;
  throw invalidField(
    "thresholds.budget_percent",
    `must be at most ${MAX_PERCENTS} whole numbers from 1 to ${MAX_PERCENT}, each larger than the one before`,
  );
}
