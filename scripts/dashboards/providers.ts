import { dashboard, graph, of, quantileBy, rateBy } from "./panels.ts";

/** Attempts that were made and say something about the provider. */
const JUDGED = 'outcome!~"skipped|cancelled"';
const FAILED = 'outcome=~"upstream_.*|internal",outcome!="upstream_rejected"';

/** Attempts and health of providers and of the targets of names. */
export const providers = dashboard({
  uid: "parley-providers",
  title: "Providers and targets",
  description: "Calls of upstream models by provider and target: failures, times, circuit breakers, retries, hedges.",
  sections: [
    {
      title: "Providers",
      panels: [
        graph("Calls", [[rateBy("provider", "parley_attempts_total", 'outcome!="skipped"'), "{{provider}}"]], {
          unit: "reqps",
          isStacked: true,
        }),
        graph(
          "Failed",
          [
            [
              `${rateBy("provider", "parley_attempts_total", FAILED)} / ${rateBy("provider", "parley_attempts_total", JUDGED)}`,
              "{{provider}}",
            ],
          ],
          { unit: "percentunit" },
        ),
        graph(
          "First content of streams, 95th percentile",
          [[quantileBy("provider", [0.95, "parley_attempt_first_content_seconds"]), "{{provider}}"]],
          {
            unit: "s",
            about: "Of the provider alone: from the beginning of a call.",
          },
        ),
      ],
    },
    {
      title: "Targets",
      panels: [
        graph("Calls", [[rateBy("target", "parley_attempts_total", 'outcome!="skipped"'), "{{target}}"]], {
          unit: "reqps",
          isStacked: true,
        }),
        graph(
          "Outcomes, without served",
          [[rateBy("target, outcome", "parley_attempts_total", 'outcome!="served"'), "{{target}} {{outcome}}"]],
          {
            unit: "reqps",
            about: "skipped: passed over without a call; cancelled: ended by the caller, or by a faster attempt.",
          },
        ),
        graph("Duration, 95th percentile", [[quantileBy("target", [0.95, "parley_attempt_seconds"]), "{{target}}"]], {
          unit: "s",
        }),
        graph(
          "First content of streams, median",
          [[quantileBy("target", [0.5, "parley_attempt_first_content_seconds"]), "{{target}}"]],
          {
            unit: "s",
          },
        ),
        graph(
          "Time per output token, median",
          [[quantileBy("target", [0.5, "parley_output_token_seconds"]), "{{target}}"]],
          {
            unit: "s",
          },
        ),
        graph(
          "Completions by name and outcome",
          [[rateBy("model, outcome", "parley_completions_total"), "{{model}} {{outcome}}"]],
          {
            unit: "reqps",
            about: "What callers of the name got in the end.",
          },
        ),
      ],
    },
    {
      title: "Protection",
      panels: [
        graph("Circuit breakers", [[`max by (upstream) (parley_breaker_open${of()})`, "{{upstream}}"]], {
          about: "1 open, 0.5 half-open, 0 closed; the worst of all replicas.",
        }),
        graph(
          "Retries and second attempts",
          [[rateBy("provider, event", "parley_retry_permits_total"), "{{provider}} {{event}}"]],
          {
            unit: "reqps",
            about: "Permits of the retry budget of a provider.",
          },
        ),
        graph("Retries in flight", [[`sum by (provider) (parley_retries_in_flight${of()})`, "{{provider}}"]]),
        graph("Hedges", [[rateBy("model, event", "parley_hedges_total"), "{{model}} {{event}}"]], {
          unit: "reqps",
          about: "Second attempts beside slow ones; none is shown where no name has hedge.",
        }),
        graph(
          "Targets that are passed over",
          [[`max by (model, target) (parley_target_outlier${of()})`, "{{model}}: {{target}}"]],
          {
            about: "1 while a target fails more often than the others; none is shown while none does.",
          },
        ),
      ],
    },
  ],
});
