import { calcPrice, findProvider, type ModelPrice, type Provider } from "@pydantic/genai-prices";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/parse.ts";
import type { Price } from "../../src/config/config.ts";
import { costOf } from "../../src/core/cost.ts";
import type { TokenCounts } from "../../src/core/ledger.ts";
import { NO_FEES } from "../support/prices.ts";

const HOSTS = [
  { id: "anthropic", dialect: "anthropic", baseUrl: "https://api.anthropic.com" },
  { id: "google", dialect: "gemini", baseUrl: "https://generativelanguage.googleapis.com" },
  { id: "openai", dialect: "openai", baseUrl: "https://api.openai.com/v1" },
  { id: "openrouter", dialect: "openai", baseUrl: "https://openrouter.ai/api/v1" },
  { id: "groq", dialect: "openai", baseUrl: "https://api.groq.com/openai/v1" },
  { id: "mistral", dialect: "openai", baseUrl: "https://api.mistral.ai/v1" },
  { id: "perplexity", dialect: "openai", baseUrl: "https://api.perplexity.ai" },
] as const;

interface Host {
  readonly dialect: string;
  readonly baseUrl: string;
}

const TEXT = { input: ["text"], output: ["text"] };

/** The price of a model with these prices in the file. Default: none. */
function priceOf({ dialect, baseUrl }: Host, model: string, modalities = TEXT, price?: object): Price | undefined {
  const text = JSON.stringify({
    providers: { p: { dialect, base_url: baseUrl, api_keys: ["${P_KEY}"] } },
    models: { m: { provider: "p", upstream_model: model, modalities, price } },
  });
  const config = parseConfig({ file: "parley.yaml", text, env: { P_KEY: "k".repeat(40) } });
  return config.models.find(({ id }) => id === "m")!.price;
}

describe("the context window of a model without one in the file", () => {
  const factsOf = (entry: object) => {
    const text = JSON.stringify({
      providers: { p: { preset: "openai", api_keys: ["${P_KEY}"] } },
      models: { m: { provider: "p", ...entry } },
    });
    return parseConfig({ file: "parley.yaml", text, env: { P_KEY: "k".repeat(40) } }).models.find(
      ({ id }) => id === "m",
    )!;
  };

  it.each<[string, object, object]>([
    [
      "is that of the list",
      { upstream_model: "gpt-5.1" },
      {
        contextWindow: 400_000,
        maxOutputTokens: 32_768,
        sources: { contextWindow: "list", maxOutputTokens: "assumed" },
      },
    ],
    [
      "bounds the answer that is assumed",
      { upstream_model: "gpt-4" },
      { contextWindow: 8_192, maxOutputTokens: 8_192, defaultMaxTokens: 8_192, sources: { contextWindow: "list" } },
    ],
    [
      "is below the operator's",
      { upstream_model: "gpt-5.1", context_window: 100_000, max_output_tokens: 50_000 },
      {
        contextWindow: 100_000,
        maxOutputTokens: 50_000,
        sources: { contextWindow: "configured", maxOutputTokens: "configured" },
      },
    ],
    [
      "is assumed for an unknown model",
      { upstream_model: "no-such-model" },
      { contextWindow: 131_072, sources: { contextWindow: "assumed", price: undefined } },
    ],
  ])("%s", (_, entry, facts) => {
    expect(factsOf(entry)).toMatchObject(facts);
  });
});

/** Names of a host's models that are sold by the token, at prices that do not depend on the hour. */
function namesOf(provider: Provider): string[] {
  return provider.models.flatMap(({ id, prices }) => {
    const isHourly = Array.isArray(prices) && prices.some(({ constraint }) => constraint?.type === "time_of_date");
    const price = isHourly ? undefined : calcPrice({ input_tokens: 1 }, id, { provider })?.model_price;
    return price?.["input_mtok"] === undefined || price["output_mtok"] === undefined ? [] : [id];
  });
}

/** The base price in micro-USD. */
function usdOf(price: ModelPrice[string]): number {
  return Math.round((typeof price === "object" ? price.base : (price ?? 0)) * 1e6);
}

/** Whether its prices are whole micro-USD per million tokens. Parley rounds others, such as a twelfth of a dollar. */
function isWhole(name: string, provider: Provider): boolean {
  const prices = Object.values(calcPrice({ input_tokens: 1 }, name, { provider })!.model_price);
  return prices.every((price) => typeof price !== "number" || Math.abs((price * 1e6) % 1) < 1e-6);
}

describe("a model without a price in the file", () => {
  const sold = HOSTS.flatMap((host) => {
    const provider = findProvider({ providerId: host.id })!;
    return namesOf(provider).flatMap((name) => {
      const price = priceOf(host, name);
      return price === undefined || !isWhole(name, provider) ? [] : [{ name, provider, price }];
    });
  });

  it("has the list price at every host and for every length of its prompt, to the micro-dollar", () => {
    expect(sold.length).toBeGreaterThan(700);
    // Long prompts are as likely as short ones.
    const tokens = fc.oneof(fc.nat({ max: 1_000 }), fc.nat({ max: 1_000_000 }));
    const usage = fc.record({
      text: tokens,
      cached: tokens,
      written: tokens,
      output: tokens,
      other: tokens,
      isHour: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.nat({ max: sold.length - 1 }), usage, (index, counted) => {
        const { text, cached, written, output, other, isHour } = counted;
        const { name, provider, price } = sold[index]!;
        const listed = calcPrice({ input_tokens: 1 }, name, { provider })!.model_price;
        // Without a price for a write, Parley assumes that of its dialect.
        const listedWrite = listed[isHour ? "cache_write_1h_mtok" : "cache_write_mtok"];
        // Where the write costs less than the token, it is a fee beside the price of the token.
        const isListed = listedWrite !== undefined && price.cacheWrite === usdOf(listed["cache_write_mtok"]);
        const cacheWrite = isListed ? written : 0;
        const prompt = text + cached + cacheWrite + 2 * other;
        const media = { audio: Math.min(other, cached), image: Math.min(other, Math.max(cached - other, 0)) };
        const images = Math.min(other, output);
        const { total_price: usd } = calcPrice(
          {
            input_tokens: prompt,
            cache_read_tokens: cached,
            cache_write_tokens: cacheWrite,
            ...(isHour && { cache_write_1h_tokens: cacheWrite }),
            input_audio_tokens: other + media.audio,
            cache_audio_read_tokens: media.audio,
            input_image_tokens: other + media.image,
            cache_image_read_tokens: media.image,
            output_tokens: output,
            output_image_tokens: images,
            web_searches: other,
            storage_searches: written,
            code_executions: output,
          },
          name,
          { provider },
        )!;
        const ledger: TokenCounts = {
          prompt,
          promptAudio: other + media.audio,
          promptImage: other + media.image,
          cached,
          cachedAudio: media.audio,
          cachedImage: media.image,
          cacheWrite,
          completion: output,
          reasoning: 0,
          image: images,
          webSearches: other,
          fileSearches: written,
          codeExecutions: output,
        };
        const cost = costOf(ledger, price, { cacheWrite: isHour ? "hour" : "minutes", priceFactor: 1 });
        // Rounded up from the same amount.
        const more = cost - usd * 1_000_000;
        expect(more, `${name} for ${usd} USD`).toBeGreaterThan(-0.0001);
        expect(more, `${name} for ${usd} USD`).toBeLessThan(1.0001);
      }),
      { numRuns: 2_000 },
    );
  });

  it("has the prices of pictures and speech where they differ", () => {
    expect(priceOf(HOSTS[1], "gemini-3-pro-image-preview")).toMatchObject({
      input: 2_000_000,
      imageOutput: 120_000_000,
    });
    expect(priceOf(HOSTS[1], "models/gemini-3-flash-preview")).toMatchObject({ audioInput: 1_000_000 });
    expect(priceOf(HOSTS[2], "gpt-audio")).toMatchObject({ audioInput: 32_000_000, audioOutput: 64_000_000 });
  });

  it("has the fees for requests, searches of the web and searches of files where they are known", () => {
    expect(priceOf(HOSTS[6], "sonar-pro")!.fees).toEqual({ ...NO_FEES, requests: 14_000_000_000, webSearches: 0 });
    expect(priceOf(HOSTS[2], "gpt-5.1")!.fees).toEqual({
      ...NO_FEES,
      webSearches: 10_000_000_000,
      fileSearches: 2_500_000_000,
    });
    expect(priceOf(HOSTS[1], "gemini-3-pro-preview")!.fees).toEqual(NO_FEES);
  });

  it("pays for a token that is written to a cache also where only the fee for the write is listed", () => {
    const price = priceOf(HOSTS[3], "google/gemini-3-pro-image-preview")!;
    expect(price.cacheWrite).toBeGreaterThan(price.input);
  });

  it.each([
    ["pictures", "google/gemini-2.5-flash-image", { input: ["text"], output: ["text", "image"] }],
    ["speech", "openai/gpt-audio", { input: ["text"], output: ["text", "audio"] }],
    ["recordings", "openai/gpt-audio", { input: ["text", "audio"], output: ["text"] }],
  ])("has none when the host lists no price for %s, which cost more than text", (_, name, modalities) => {
    expect(priceOf(HOSTS[3], name)).toBeDefined();
    expect(priceOf(HOSTS[3], name, modalities)).toBeUndefined();
  });

  it.each([
    [HOSTS[2], "gpt-4o-search-preview"],
    [HOSTS[3], "openai/gpt-4o-mini-search-preview"],
    [HOSTS[3], "openai/o4-mini-deep-research"],
    [HOSTS[3], "perplexity/sonar"],
    [HOSTS[6], "sonar-pro-search"],
  ])("has none for a model that always searches, unless there is a fee for the request: %s", (host, name) => {
    expect(priceOf(host, name)).toBeUndefined();
    expect(priceOf(host, name, TEXT, { request: 35 })!.fees.requests).toBe(35_000_000_000);
  });

  it.each([
    ["of an unknown name", HOSTS[2], "no-such-model"],
    ["with units that are not counted", HOSTS[3], "perplexity/sonar-deep-research"],
    ["with units that are not counted, at their maker", HOSTS[6], "sonar-deep-research"],
    ["with videos in its answers, which are not counted", HOSTS[1], "gemini-omni-flash-preview"],
    ["at an unknown host", { dialect: "openai", baseUrl: "https://llm.example/v1" }, "gpt-5"],
    [
      "at a host with prices by the hour",
      { dialect: "openai", baseUrl: "https://api.deepseek.com/v1" },
      "deepseek-v4-pro",
    ],
  ])("has none %s", (_, host, name) => {
    expect(priceOf(host, name)).toBeUndefined();
  });
});
