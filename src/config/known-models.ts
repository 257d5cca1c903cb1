import { calcPrice, findProvider, type ModelPrice, type PriceCalculation } from "@pydantic/genai-prices";
import type { ModelInput } from "./schema.ts";

/** A price as in a file, with that of the prompt. */
export type PriceInput = NonNullable<ModelInput["price"]> & { readonly input: number };
type Tier = NonNullable<PriceInput["tiers"]>[number];
type TokenKind = Exclude<keyof Tier, "above">;
type Fee = Exclude<keyof PriceInput, TokenKind | "tiers">;

/** Kinds of tokens by the names of the package, in US dollars per million. */
const KINDS: Readonly<Record<string, TokenKind>> = {
  input_mtok: "input",
  output_mtok: "output",
  cache_read_mtok: "cached_input",
  cache_write_mtok: "cache_write",
  cache_write_1h_mtok: "cache_write_1h",
  input_audio_mtok: "audio_input",
  output_audio_mtok: "audio_output",
  output_image_mtok: "image_output",
  input_image_mtok: "image_input",
  cache_audio_read_mtok: "cached_audio_input",
  cache_image_read_mtok: "cached_image_input",
};

/** Fees by the names of the package, in US dollars for a thousand. */
const FEES: Readonly<Record<string, Fee>> = {
  requests_kcount: "request",
  web_searches_kcount: "web_search",
  storage_searches_kcount: "file_search",
  code_executions_kcount: "code_execution",
};

/** Units that are billed for ordinary completions, and that Parley does not count. */
const UNCOUNTED = ["output_reasoning_mtok", "output_citation_mtok", "output_video_mtok", "input_text_messages_kcount"];

/** Facts of a model from `@pydantic/genai-prices`. */
export interface KnownModel {
  /**
   * The list price of today. Undefined for prices that depend on the time of day, and for those with units that Parley does not
   * count.
   */
  readonly price: PriceInput | undefined;
  /** In tokens; undefined where the package has none. */
  readonly contextWindow: number | undefined;
}

/** Returns the package's facts of a model of a host. Undefined for unknown hosts and models. */
export function knownModel(baseUrl: string, upstreamModel: string): KnownModel | undefined {
  const provider = findProvider({ providerApiUrl: baseUrl });
  if (provider === undefined) return undefined;
  // Google's API has its own models below this path.
  const name = upstreamModel.replace(/^models\//, "");
  const found = calcPrice({ input_tokens: 1 }, name, { provider });
  if (found === null) return undefined;
  return { price: priceOf(found), contextWindow: found.model.context_window };
}

function priceOf(found: PriceCalculation): PriceInput | undefined {
  const { prices } = found.model;
  if (Array.isArray(prices) && prices.some(({ constraint }) => constraint?.type === "time_of_date")) return undefined;
  if (UNCOUNTED.some((unit) => found.model_price[unit] !== undefined)) return undefined;
  return toPriceInput(found.model_price);
}

function toPriceInput(given: ModelPrice): PriceInput | undefined {
  const ofTokens = Object.keys(KINDS).map((name) => given[name]);
  const starts = new Set(ofTokens.flatMap((price) => tiersOf(price).map(({ start }) => start)));
  const first = pricesAbove(0, given);
  if (first === undefined) return undefined;
  const tiers = [...starts].toSorted((a, b) => a - b).map((above) => ({ above, ...pricesAbove(above, given)! }));
  return { ...first, ...feesOf(given), ...(tiers.length > 0 && { tiers }) };
}

function feesOf(given: ModelPrice): Partial<Record<Fee, number>> {
  const found: Partial<Record<Fee, number>> = {};
  for (const [name, fee] of Object.entries(FEES)) {
    const price = given[name];
    // The highest price where there are tiers.
    if (price !== undefined)
      found[fee] =
        typeof price === "number" ? price : Math.max(price.base, ...tiersOf(price).map((tier) => tier.price));
  }
  // Hosts with a fee for the request charge it in place of one for each search.
  if (found.request !== undefined) found.web_search ??= 0;
  return found;
}

/** The prices of a prompt with more tokens than `above`. */
function pricesAbove(above: number, given: ModelPrice): Omit<Tier, "above"> | undefined {
  const prices: Partial<Record<TokenKind, number>> = {};
  for (const [name, kind] of Object.entries(KINDS)) {
    const price = given[name];
    if (price === undefined) continue;
    const tier = tiersOf(price).findLast(({ start }) => start <= above);
    prices[kind] = tier?.price ?? (typeof price === "number" ? price : price.base);
  }
  const { input } = prices;
  if (input === undefined) return undefined;
  // Some hosts list the fee for a write beside the price of the token.
  if (prices.cache_write !== undefined && prices.cache_write < input) prices.cache_write += input;
  return { ...prices, input };
}

function tiersOf(price: ModelPrice[string]): readonly { readonly start: number; readonly price: number }[] {
  return typeof price === "object" ? price.tiers : [];
}
