import type { Report } from "./config-error.ts";
import type { Fees, Price, ProviderConfig, TokenPrices } from "./config.ts";
import { DIALECT_DEFAULTS, type Dialect } from "./dialects.ts";
import type { PriceInput } from "./known-models.ts";
import type { CompleteModelInput } from "./models.ts";
import { FEES, type ModelInput } from "./schema.ts";

const MICRO_USD = 1_000_000;

/** The price in the file, else the list price; a price in the file that has only fees is added to the list price. */
export function findPrice(
  given: ModelInput["price"],
  listed: PriceInput | undefined,
  { id, report }: { readonly id: string; readonly report: Report },
): PriceInput | undefined {
  if (given?.input !== undefined) return { ...given, input: given.input };
  if (given === undefined) return listed;
  const path = ["models", id, "price", "input"];
  if (Object.keys(given).some((key) => !(key in FEES))) report(path, "is required beside other prices of tokens");
  else if (listed === undefined) report(path, "is required, because the list price of this model is not known");
  return listed && { ...listed, ...given, input: listed.input };
}

/** Upstream names of models that search the web for every request. Hosts bill that by the search or the request, many times the tokens. */
const ALWAYS_SEARCHES = /(?:^|\/)sonar\b|-search-(?:preview|api)\b|-deep-research\b|[-:]online$/;

/**
 * Whether a list price has all that the model costs: speech and pictures cost several times as much as text, and so does a search in
 * every request, for which the list of some hosts has no fee. Google lists speech in the prompt only where its price differs.
 */
export function isComplete(
  known: PriceInput,
  { upstream_model: name, price, modalities: { input, output } }: CompleteModelInput,
  dialect: Dialect,
): boolean {
  if (ALWAYS_SEARCHES.test(name) && (price?.request ?? known.request) === undefined) return false;
  if (output.includes("embedding")) return true;
  if (known.output === undefined) return false;
  if (output.includes("image") && known.image_output === undefined) return false;
  if (output.includes("audio") && known.audio_output === undefined) return false;
  return !input.includes("audio") || known.audio_input !== undefined || dialect === "gemini";
}

interface PriceParts {
  readonly id: string;
  readonly price: PriceInput;
  readonly provider: ProviderConfig;
  readonly isCompletion: boolean;
  readonly report: Report;
}

type TokenPricesInput = Omit<NonNullable<PriceInput["tiers"]>[number], "above">;

/** The prices of all kinds of tokens, and the fees. */
export function resolvePrice({ id, price: given, provider, isCompletion, report }: PriceParts): Price {
  const { tiers = [], ...first } = given;
  const path = ["models", id, "price"];
  const kinds = Object.keys(first).filter((key) => !(key in FEES));
  let above = 0;
  tiers.forEach((tier, index) => {
    const missing = kinds.find((kind) => !(kind in tier));
    if (missing !== undefined)
      report([...path, "tiers", index, missing], "is required, because the price for shorter prompts has it");
    if (tier.above <= above) report([...path, "tiers", index, "above"], "must be more than in the tier before it");
    above = tier.above;
  });
  if (isCompletion && given.output === undefined) report([...path, "output"], "is required");
  const toPrices = (prices: TokenPricesInput): TokenPrices => resolveTokenPrices(prices, provider);
  return {
    ...toPrices(first),
    tiers: tiers.map(({ above: abovePromptTokens, ...prices }) => ({ ...toPrices(prices), abovePromptTokens })),
    fees: resolveFees(given),
  };
}

/** A host with a fee for each request that searches has none for each search, and the other way round. */
function resolveFees(given: PriceInput): Fees {
  const forMillion = (usd: number): number => Math.round(usd * 1_000 * MICRO_USD);
  const known = (usd: number | undefined): number | undefined => (usd === undefined ? undefined : forMillion(usd));
  const { searched_request: searched } = given;
  return {
    requests: forMillion(given.request ?? 0),
    searchedRequests: forMillion(searched ?? 0),
    webSearches: known(given.web_search ?? (searched === undefined ? undefined : 0)),
    fileSearches: known(given.file_search),
    codeExecutions: known(given.code_execution),
  };
}

function resolveTokenPrices(given: TokenPricesInput, { dialect }: ProviderConfig): TokenPrices {
  const [minutes, hour] = DIALECT_DEFAULTS[dialect].cacheWrite;
  const price = { ...given, output: given.output ?? 0 };
  const cacheWrite = price.cache_write ?? minutes * price.input;
  // Hosts that charge for writes at all charge twice the input for an hour.
  const hourFactor = cacheWrite > price.input ? 2 : hour;
  const { audio_input: audioInput = price.input, image_input: imageInput = price.input } = price;
  const toMicroUsd = (usd: number): number => Math.round(usd * MICRO_USD);
  return {
    input: toMicroUsd(price.input),
    output: toMicroUsd(price.output),
    cachedInput: toMicroUsd(price.cached_input ?? price.input),
    cacheWrite: toMicroUsd(cacheWrite),
    cacheWriteHour: toMicroUsd(price.cache_write_1h ?? Math.max(cacheWrite, hourFactor * price.input)),
    audioInput: toMicroUsd(audioInput),
    imageInput: toMicroUsd(imageInput),
    cachedAudioInput: toMicroUsd(price.cached_audio_input ?? price.cached_input ?? audioInput),
    cachedImageInput: toMicroUsd(price.cached_image_input ?? price.cached_input ?? imageInput),
    imageOutput: toMicroUsd(price.image_output ?? price.output),
    audioOutput: toMicroUsd(price.audio_output ?? price.output),
  };
}
