import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { invalidField, type Failure } from "./failure.ts";
import type { TokenCounts } from "./ledger.ts";
import type { Model } from "./model.ts";
import type { SentSize } from "./provider.ts";

/** What a provider's own tools are billed by, beside tokens; with the names of the counts in the ledger. */
export const FEE_UNITS = ["webSearches", "fileSearches", "codeExecutions"] as const;

export type FeeUnit = (typeof FEE_UNITS)[number];

/** Fees beside the prices of tokens, in millionths of a micro-USD for each. Undefined: the price is not known. */
export type Fees = { readonly [Unit in FeeUnit]: number | undefined } & {
  readonly requests: number;
  /** For a request with searches of the web, however many they are. */
  readonly searchedRequests: number;
};

/**
 * Most uses of the provider's own tools that a request can cause, by unit; Infinity where the request does not bound them. Default of
 * each: none.
 */
export type ToolUses = { readonly [Unit in FeeUnit]?: number | undefined } & {
  /** Name of a tool with unknown fees. */
  readonly unknown?: string | undefined;
  /** Whether the provider may search without a count in its usage. Default: no. */
  readonly uncounted?: boolean | undefined;
};

/** Most uses that one request causes, as the operator states. */
export type MaxToolUses = { readonly [Unit in FeeUnit]?: number | undefined };

/** The fees of what a provider counted, in millionths of a micro-USD. Units without a known price cost nothing. */
export function feesOf(counts: Pick<TokenCounts, FeeUnit>, fees: Fees): number {
  let sum = fees.requests + ((counts.webSearches ?? 0) > 0 ? fees.searchedRequests : 0);
  for (const unit of FEE_UNITS) sum += (counts[unit] ?? 0) * (fees[unit] ?? 0);
  return sum;
}

/** Names of units that were counted and have no known price. */
function unpricedUnits(counts: Pick<TokenCounts, FeeUnit>, fees: Fees): readonly string[] {
  return FEE_UNITS.filter((unit) => (counts[unit] ?? 0) > 0 && fees[unit] === undefined).map(toWords);
}

/**
 * Completes the counts of a provider for the ledger and the caller: searches that it does not count are all that there may have been,
 * and units without a price are among the unknown ones, as searches without a bound are.
 */
export function completeCounts(usage: Usage, sending: SentTools): void {
  const { model, sent } = sending;
  if (model.price === undefined) return;
  const { fees } = model.price;
  const isUncounted = sent.uses?.uncounted === true && usage.webSearches === undefined && fees.webSearches !== 0;
  const most = isUncounted ? boundedUses(sending).webSearches : 0;
  if (most > 0) usage.webSearches = most;
  const unpriced = [...unpricedUnits(usage, fees), ...(isUncounted && most === 0 ? [toWords("webSearches")] : [])];
  if (unpriced.length === 0) return;
  usage.unknownUnits = [...new Set([...unpriced, ...usage.unknownUnits])].slice(0, MAX_UNKNOWN_UNITS);
}

/** Most names in `Usage.unknown_units`. */
const MAX_UNKNOWN_UNITS = 16;

/** A model and what is sent to it. */
export interface SentTools {
  readonly model: Pick<Model, "id" | "price" | "maxToolUses">;
  readonly sent: Pick<SentSize, "uses">;
}

/**
 * Upper bound of the fees of one attempt, in millionths of a micro-USD: of the uses that the request bounds, or the operator. Undefined
 * without a bound or a price.
 */
export function boundFees(sending: SentTools): number | undefined {
  const { model, sent } = sending;
  const { fees } = model.price!;
  let sum = fees.requests;
  if (sent.uses === undefined) return sum;
  if (sent.uses.unknown !== undefined) return undefined;
  if ((sent.uses.webSearches ?? 0) > 0) sum += fees.searchedRequests;
  for (const unit of FEE_UNITS) {
    const most = mostUses(unit, sending);
    const price = most === 0 ? 0 : fees[unit];
    if (price === undefined || (price > 0 && most === Infinity)) return undefined;
    if (price > 0) sum += most * price;
  }
  return sum;
}

/** The uses that an attempt caused at most, for one whose provider counted nothing; 0 where nothing bounds them. */
export function boundedUses(sending: SentTools): Record<FeeUnit, number> {
  const bounded = (unit: FeeUnit): number => {
    const most = mostUses(unit, sending);
    return most === Infinity ? 0 : most;
  };
  return {
    webSearches: bounded("webSearches"),
    fileSearches: bounded("fileSearches"),
    codeExecutions: bounded("codeExecutions"),
  };
}

/** More uses than this are no bound: no service makes so many for one request, and all of them are booked for one without a count. */
const MAX_USES = 10_000;

function mostUses(unit: FeeUnit, { model, sent }: SentTools): number {
  const asked = sent.uses?.[unit] ?? 0;
  return asked > MAX_USES ? (model.maxToolUses?.[unit] ?? Infinity) : asked;
}

const IN_CONFIGURATION = {
  webSearches: "web_search",
  fileSearches: "file_search",
  codeExecutions: "code_execution",
} as const satisfies Record<FeeUnit, string>;

/** Such as `web searches`. */
const toWords = (unit: FeeUnit): string => unit.replace(/[A-Z]/, (letter) => ` ${letter.toLowerCase()}`);

/** The failure, under a budget, of a request whose tools may cost any amount: `boundFees` has none. */
export function unboundedFees(sending: SentTools): Failure {
  const { model, sent } = sending;
  const because = "so it is not allowed under a budget";
  if (sent.uses?.unknown !== undefined)
    return invalidField("tools", `what ${sent.uses.unknown} costs is not known here, ${because}`);
  const unit = FEE_UNITS.find((each) => mostUses(each, sending) > 0 && model.price?.fees[each] === undefined);
  if (unit !== undefined)
    return invalidField(
      "tools",
      `the price of ${toWords(unit)} of ${model.id} is not known here, ${because}; let the operator write price.${IN_CONFIGURATION[unit]} of the model`,
    );
  const unbounded = FEE_UNITS.find((each) => mostUses(each, sending) === Infinity)!;
  return invalidField(
    "tools",
    `nothing bounds the ${toWords(unbounded)} of this request, ${because}; set max_uses of the tool (at most ${MAX_USES}), where it has that field, or let the operator state max_tool_uses.${IN_CONFIGURATION[unbounded]} of ${model.id}`,
  );
}
