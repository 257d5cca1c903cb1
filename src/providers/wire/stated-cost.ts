import type { CostedUsage } from "../../core/provider.ts";
import { isObject, type Json, number, object } from "./json.ts";

/** Ticks of xAI in a micro-USD: a dollar has 10,000,000,000. */
const TICKS = 10_000;
const MICRO_USD = 1_000_000;
/** Largest cost that is read, in micro-USD: that of an entry of the ledger. */
const MAX_MICRO_USD = 100_000_000_000;

/** Rounding error of doubles, in micro-USD: `0.000_123 * 1_000_000` is a little more than 123. */
const ROUNDING = 1e-6;

/** Adds what the provider says that the answer costs, from its `usage` object. Returns the same object. */
export function withStatedCost(usage: CostedUsage, from: Json): CostedUsage {
  const microUsd = readCost(from);
  if (microUsd !== undefined) usage.statedMicroUsd = microUsd;
  return usage;
}

/**
 * What an answer costs, in micro-USD; undefined where the usage does not say. OpenRouter has US dollars in `cost`, and with a key of another
 * host (`is_byok`) what that host bills beside it ("Usage Accounting"); Perplexity in `cost.total_cost` (`Cost` of its API reference); xAI
 * has ticks in `cost_in_usd_ticks` ("Cost Tracking"; all November 2026).
 */
function readCost({
  cost,
  cost_details: details,
  is_byok: isOfHost,
  cost_in_usd_ticks: ticks,
}: Json): number | undefined {
  const usd = number(isObject(cost) ? cost["total_cost"] : cost);
  const ofHost = isOfHost === true ? (number(object(details)["upstream_inference_cost"]) ?? 0) : 0;
  const counted = number(ticks);
  const microUsd = usd === undefined ? counted && counted / TICKS : (usd + ofHost) * MICRO_USD;
  if (microUsd === undefined || microUsd <= 0) return undefined;
  return Math.min(Math.ceil(microUsd - ROUNDING), MAX_MICRO_USD);
}
