import { dashboard, graph, of, rateBy, stat } from "./panels.ts";

const COST = "parley_cost_micro_usd_total";
/** Cost in US dollars within a time, such as `1h`. */
const costIn = (time: string, by = ""): string =>
  `sum${by === "" ? "" : ` by (${by})`} (increase(${COST}${of()}[${time}])) / 1e6`;
/** Cost in US dollars an hour. */
const hourly = (by: string, counter = COST): string => `${rateBy(by, counter)} * 3600 / 1e6`;

/** Cost of completions. */
export const money = dashboard({
  uid: "parley-money",
  title: "Money",
  description: "Cost and tokens by model, target and provider. parley usage has exact sums from the ledger.",
  sections: [
    {
      title: "Now",
      panels: [
        stat("Cost in the last hour", [[costIn("1h"), "USD"]], { unit: "currencyUSD", span: 6 }),
        stat("Cost in the last 24 hours", [[costIn("24h"), "USD"]], { unit: "currencyUSD", span: 6 }),
        stat(
          "Prompt tokens from providers’ caches",
          [
            [
              `(sum(rate(parley_cached_tokens_total${of()}[1h])) or vector(0)) / sum(rate(parley_tokens_total${of('kind="prompt"')}[1h]))`,
              "share",
            ],
          ],
          {
            unit: "percentunit",
            span: 6,
          },
        ),
        stat(
          "Booked by an upper bound",
          [
            [
              `(sum(rate(parley_estimated_completions_total${of()}[1h])) or vector(0)) / sum(rate(parley_completions_total${of()}[1h]))`,
              "share",
            ],
          ],
          {
            unit: "percentunit",
            span: 6,
            about: "Completions without the provider’s token count.",
          },
        ),
      ],
    },
    {
      title: "Cost",
      panels: [
        graph("USD an hour by model", [[hourly("model"), "{{model}}"]], { unit: "currencyUSD", isStacked: true }),
        graph("USD an hour by provider", [[hourly("provider"), "{{provider}}"]], {
          unit: "currencyUSD",
          isStacked: true,
        }),
        graph("USD an hour by target", [[hourly("target"), "{{target}}"]], { unit: "currencyUSD", isStacked: true }),
        graph("More than was held", [[rateBy("target", "parley_reservation_overruns_total"), "{{target}}"]], {
          unit: "reqps",
          about: "Completions that cost more than their reservation; none is shown while there is none.",
        }),
        graph("Booked by an upper bound", [[rateBy("target", "parley_estimated_completions_total"), "{{target}}"]], {
          unit: "reqps",
        }),
        graph(
          "Refused by a budget or a limit",
          [[rateBy("outcome", "parley_completions_total", 'outcome=~"budget_spent|rate_limited"'), "{{outcome}}"]],
          {
            unit: "reqps",
            about: "Refusals before a completion is read are in the dashboard Overview.",
          },
        ),
      ],
    },
    {
      title: "Tokens",
      panels: [
        graph("Tokens a second by model", [[rateBy("model, kind", "parley_tokens_total"), "{{model}} {{kind}}"]], {
          isStacked: true,
        }),
        graph(
          "Tokens a second by provider",
          [[rateBy("provider, kind", "parley_tokens_total"), "{{provider}} {{kind}}"]],
          {
            isStacked: true,
          },
        ),
        graph("From providers’ caches", [[rateBy("target", "parley_cached_tokens_total"), "{{target}}"]]),
      ],
    },
    {
      title: "By key and tag (metrics.keys, metrics.tags)",
      panels: [
        graph("USD an hour by key", [[hourly("key", "parley_key_cost_micro_usd_total"), "{{key}}"]], {
          unit: "currencyUSD",
          isStacked: true,
        }),
        graph("Completions by key", [[rateBy("key", "parley_key_completions_total"), "{{key}}"]], {
          unit: "reqps",
          isStacked: true,
        }),
        graph("Tokens a second by key", [[rateBy("key", "parley_key_tokens_total"), "{{key}}"]], { isStacked: true }),
        graph("USD an hour by tag", [[hourly("tag", "parley_tag_cost_micro_usd_total"), "{{tag}}"]], {
          unit: "currencyUSD",
          isStacked: true,
        }),
        graph(
          "Completions by tag and outcome",
          [[rateBy("tag, outcome", "parley_tag_completions_total"), "{{tag}} {{outcome}}"]],
          { unit: "reqps" },
        ),
        graph("Refused by key", [[rateBy("key, code", "parley_key_refusals_total"), "{{key}} {{code}}"]], {
          unit: "reqps",
        }),
      ],
    },
  ],
});
