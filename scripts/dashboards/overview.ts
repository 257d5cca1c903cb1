import { dashboard, graph, of, quantileBy, rateBy, stat } from "./panels.ts";

/** Outcomes by the fault of Parley or of a provider; a test compares them with the table of failures. */
export const FAULTS =
  "overloaded|upstream_rate_limited|upstream_unavailable|upstream_timeout|upstream_protocol|upstream_refused_us|deadline_exceeded|internal";

const RATE = `rate(parley_completions_total${of()}[$__rate_interval])`;

/** Figures that an operator reads first. */
export const overview = dashboard({
  uid: "parley-overview",
  title: "Overview",
  description: "Rates, errors and durations by model, admission, and what is wrong now.",
  sections: [
    {
      title: "Now",
      panels: [
        stat("Completions a second", [[`sum(${RATE})`, "all"]], { unit: "reqps" }),
        stat(
          "Failed",
          [
            [
              `(sum(rate(parley_completions_total${of(`outcome=~"${FAULTS}"`)}[$__rate_interval])) or vector(0)) / sum(${RATE})`,
              "share",
            ],
          ],
          { unit: "percentunit", about: "By the fault of Parley or of a provider, after all retries and fallbacks." },
        ),
        stat("Calls in flight", [[`sum(parley_active_calls${of()})`, "all"]]),
        stat("Replicas up", [[`sum(up${of()})`, "replicas"]]),
        stat("Open circuit breakers", [
          [`count(max by (upstream) (parley_breaker_open${of()}) == 1) or vector(0)`, "open"],
        ]),
        stat("Ledger behind", [[`max(parley_ledger_lag_seconds${of()})`, "oldest entry"]], { unit: "s" }),
      ],
    },
    {
      title: "Completions",
      panels: [
        graph("By model", [[rateBy("model", "parley_completions_total"), "{{model}}"]], {
          unit: "reqps",
          isStacked: true,
        }),
        graph(
          "By outcome, without served",
          [[rateBy("outcome", "parley_completions_total", 'outcome!="served"'), "{{outcome}}"]],
          {
            unit: "reqps",
            isStacked: true,
          },
        ),
        graph(
          "Failed by model",
          [
            [
              `${rateBy("model", "parley_completions_total", `outcome=~"${FAULTS}"`)} / ${rateBy("model", "parley_completions_total")}`,
              "{{model}}",
            ],
          ],
          { unit: "percentunit", about: "By the fault of Parley or of a provider." },
        ),
        graph(
          "First content of streams, 95th percentile",
          [[quantileBy("model", [0.95, "parley_first_content_seconds"]), "{{model}}"]],
          {
            unit: "s",
          },
        ),
        graph("Duration, 95th percentile", [[quantileBy("model", [0.95, "parley_completion_seconds"]), "{{model}}"]], {
          unit: "s",
        }),
        graph(
          "Time per output token, median",
          [[quantileBy("model", [0.5, "parley_output_token_seconds"]), "{{model}}"]],
          {
            unit: "s",
          },
        ),
      ],
    },
    {
      title: "Entrance",
      panels: [
        graph("By entrance", [[rateBy("entrance", "parley_completions_total"), "{{entrance}}"]], { unit: "reqps" }),
        graph("Refused before a completion", [[rateBy("code", "parley_refusals_total"), "{{code}}"]], {
          unit: "reqps",
          isStacked: true,
        }),
        graph("Calls in flight by replica", [
          [`parley_active_calls${of()}`, "{{instance}}"],
          [`sum(parley_admission_limit${of()})`, "limit of all"],
        ]),
        graph("Waiting for admission", [[`parley_admission_waiting${of()}`, "{{instance}}"]]),
        graph(
          "Waits for admission, 95th percentile",
          [[quantileBy("instance", [0.95, "parley_admission_wait_seconds"]), "{{instance}}"]],
          {
            unit: "s",
            about: "Only of completions that had to wait; none is shown while none has to.",
          },
        ),
        graph(
          "Refused for overload",
          [[rateBy("instance, reason", "parley_overload_refusals_total"), "{{instance}} {{reason}}"]],
          {
            unit: "reqps",
          },
        ),
      ],
    },
  ],
});
