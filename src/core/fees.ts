import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { invalidField, type Failure } from "./failure.ts";
import type { TokenCounts } from "./ledger.ts";
import type { Model } from "./model.ts";
import type { SentSize } from "./provider.ts";
import type { PromptSize } from "./token-estimate.ts";

/** Units by which a provider bills its own tools, beside tokens. The names are those of the counts in the ledger. */
const FEE_UNITS = ["webSearches", "fileSearches", "codeExecutions"] as const;

export type FeeUnit = (typeof FEE_UNITS)[number];

/** Fees beside the prices of tokens, in millionths of a micro-USD per use. Undefined: the price is not known. */
export type Fees = { readonly [Unit in FeeUnit]: number | undefined } & {
  readonly requests: number;
  /** Once per request with at least one search of the web. */
  readonly searchedRequests: number;
};

/**
 * Largest number of uses of the provider's own tools that a request can cause, by unit; Infinity where the request does not bound
 * them. Default of each: 0.
 */
export type ToolUses = { readonly [Unit in FeeUnit]?: number | undefined } & {
  /** Name of a tool with unknown fees. */
  readonly unknown?: string | undefined;
  /** Whether the provider may search without a count in its usage. Default: no. */
  readonly uncounted?: boolean | undefined;
};

/** Largest number of uses per request that the operator has configured, by unit. */
export type MaxToolUses = { readonly [Unit in FeeUnit]?: number | undefined };

/** The fees of the uses that a provider counted, in millionths of a micro-USD. Units without a known price cost nothing. */
export function feesOf(counts: Pick<TokenCounts, FeeUnit>, fees: Fees): number {
  let sum = fees.requests + ((counts.webSearches ?? 0) > 0 ? fees.searchedRequests : 0);
  for (const unit of FEE_UNITS) sum += (counts[unit] ?? 0) * (fees[unit] ?? 0);
  return sum;
}

/** Names of counted units without a known price. */
function unpricedUnits(counts: Pick<TokenCounts, FeeUnit>, fees: Fees): readonly string[] {
  return FEE_UNITS.filter((unit) => (counts[unit] ?? 0) > 0 && fees[unit] === undefined).map(toWords);
}

/**
 * Completes the counts of a provider in place, for the ledger and the caller. Searches that the provider does not count become
 * the largest number that the request may have caused. Units without a price, and uncounted searches without a bound, are added to
 * `unknownUnits`.
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

/** Limit of names in `Usage.unknown_units`. */
const MAX_UNKNOWN_UNITS = 16;

/** A model and what is sent to it. */
export interface SentTools {
  readonly model: Pick<Model, "id" | "price" | "maxToolUses" | "billsDocuments">;
  readonly sent: Pick<SentSize, "uses">;
  readonly prompt?: Pick<PromptSize, "hasDocuments"> | undefined;
}

/**
 * Upper bound of the fees of one attempt, in millionths of a micro-USD. The request or the operator bounds the uses. Undefined
 * without a bound or a price.
 */
export function boundFees(sending: SentTools): number | undefined {
  const { model, sent } = sending;
  if (billsDocuments(sending)) return undefined;
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

/** Whether the provider reads the documents of the prompt for a fee, which no count shows. */
function billsDocuments({ model, prompt }: SentTools): boolean {
  return model.billsDocuments === true && prompt?.hasDocuments === true;
}

/** Upper bound of the uses of an attempt whose provider counted nothing; 0 where nothing bounds them. */
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

/** Larger bounds are ignored: no service makes more uses for one request, and an attempt without a count is booked with all of them. */
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

/** Name of a unit in words, such as `web searches`. */
const toWords = (unit: FeeUnit): string => unit.replace(/[A-Z]/, (letter) => ` ${letter.toLowerCase()}`);

/** The failure, under a budget, of a request whose tools may cost any amount: `boundFees` returned undefined. */
export function unboundedFees(sending: SentTools): Failure {
  const { model, sent } = sending;
  const because = "so it is not allowed under a budget";
  if (billsDocuments(sending))
    return invalidField(
      "messages",
      `what the provider of ${model.id} charges for documents is not known here, ${because}`,
    );
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
