/** Series by their names with labels, in promtool's notation: `first+step x count`, one value in `stepMinutes`. */
export type Series = Readonly<Record<string, string>>;

/** What makes an alert fire within `atMinutes`, and what is like it and must not. */
export interface AlertCause {
  readonly atMinutes: number;
  /** Default: 1. */
  readonly stepMinutes?: number;
  readonly fires: Series;
  readonly quiet: Series;
}

const PARLEY = 'job="parley",instance="one:9464"';
const completions = (outcome: string): string =>
  `parley_completions_total{${PARLEY},entrance="http",model="chat",outcome="${outcome}",streamed="true"}`;
const attempts = (outcome: string): string =>
  `parley_attempts_total{${PARLEY},target="east",provider="one",outcome="${outcome}"}`;
const gauge = (name: string, labels = ""): string => `${name}{${PARLEY}${labels}}`;
const TARGET = ',target="east",provider="one"';

/** Cumulative buckets of a histogram in which `within` of 100 values a minute are at most `bound`. */
function buckets(name: string, labels: string, [bound, within]: readonly [bound: number, within: number]): Series {
  return {
    [`${name}_bucket{${PARLEY}${labels},le="${bound}"}`]: `0+${within}x60`,
    [`${name}_bucket{${PARLEY}${labels},le="${bound * 2}"}`]: "0+100x60",
    [`${name}_bucket{${PARLEY}${labels},le="+Inf"}`]: "0+100x60",
  };
}

/** By the names of the alerts. */
export const ALERT_CAUSES: Readonly<Record<string, AlertCause>> = {
  ParleyDown: {
    atMinutes: 5,
    fires: { [`up{${PARLEY}}`]: "1 1 0x60" },
    quiet: { [`up{${PARLEY}}`]: "1 0 1x60", 'up{job="other",instance="x"}': "0x60" },
  },
  ParleyRestarting: {
    atMinutes: 10,
    fires: { [gauge("process_start_time_seconds")]: "100 100 200 200 300 300 400x60" },
    quiet: { [gauge("process_start_time_seconds")]: "100 100 200x60" },
  },
  ParleyWorkersReplaced: {
    atMinutes: 10,
    fires: { [gauge("parley_workers_replaced_total")]: "0 0 0 1x60" },
    quiet: { [gauge("parley_workers_replaced_total")]: "3x60" },
  },
  ParleyCompletionsFailing: {
    atMinutes: 15,
    fires: { [completions("served")]: "0+90x60", [completions("upstream_unavailable")]: "0+10x60" },
    // Limits, wrong requests and callers that leave are no fault of the service.
    quiet: {
      [completions("served")]: "0+90x60",
      [completions("upstream_unavailable")]: "0+3x60",
      [completions("rate_limited")]: "0+40x60",
      [completions("cancelled")]: "0+40x60",
    },
  },
  ParleyInternalFault: {
    // The first one ever: a counter that begins at 1.
    atMinutes: 20,
    fires: { [completions("internal")]: "_x12 1x60" },
    quiet: { [completions("internal")]: "1x60", [completions("served")]: "0+90x60" },
  },
  ParleyCredentialRefused: {
    atMinutes: 20,
    fires: { [attempts("upstream_refused_us")]: "_x15 1x60" },
    quiet: { [attempts("upstream_refused_us")]: "4x60", [attempts("upstream_timeout")]: "0+9x60" },
  },
  ParleyTargetFailing: {
    atMinutes: 15,
    fires: { [attempts("served")]: "0+70x60", [attempts("upstream_timeout")]: "0+30x60" },
    // What callers asked wrongly, and what was not called.
    quiet: {
      [attempts("served")]: "0+70x60",
      [attempts("upstream_rejected")]: "0+70x60",
      [attempts("skipped")]: "0+70x60",
      [attempts("upstream_timeout")]: "0+10x60",
    },
  },
  ParleyBreakerOpen: {
    // Half-open for a probe in between.
    atMinutes: 12,
    fires: { [gauge("parley_breaker_open", ',upstream="one/east"')]: "0 0 1 1 0.5 1 1 0.5 1x60" },
    quiet: { [gauge("parley_breaker_open", ',upstream="one/east"')]: "0 0 1 1 0x60" },
  },
  ParleyProviderRateLimited: {
    atMinutes: 20,
    fires: { [attempts("served")]: "0+80x60", [attempts("upstream_rate_limited")]: "0+20x60" },
    quiet: { [attempts("served")]: "0+95x60", [attempts("upstream_rate_limited")]: "0+5x60" },
  },
  ParleyRetriesRefused: {
    atMinutes: 15,
    fires: {
      [gauge("parley_retry_permits_total", ',provider="one",event="granted"')]: "0+10x60",
      [gauge("parley_retry_permits_total", ',provider="one",event="refused"')]: "0+30x60",
    },
    quiet: {
      [gauge("parley_retry_permits_total", ',provider="one",event="granted"')]: "0+30x60",
      [gauge("parley_retry_permits_total", ',provider="one",event="refused"')]: "0+10x60",
    },
  },
  ParleyFirstContentSlow: {
    atMinutes: 30,
    fires: buckets("parley_first_content_seconds", ',model="chat"', [30, 50]),
    quiet: buckets("parley_first_content_seconds", ',model="chat"', [5, 98]),
  },
  ParleyOverloaded: {
    atMinutes: 10,
    fires: { [gauge("parley_overload_refusals_total", ',reason="queue"')]: "0+60x60" },
    quiet: { [gauge("parley_overload_refusals_total", ',reason="queue"')]: "0 2x60" },
  },
  ParleyMemoryShort: {
    atMinutes: 5,
    fires: { [gauge("parley_memory_short")]: "0 1x60" },
    quiet: { [gauge("parley_memory_short")]: "0 1 0x60" },
  },
  ParleyEventLoopLate: {
    atMinutes: 15,
    fires: { [gauge("nodejs_eventloop_lag_p99_seconds")]: "0.3x60" },
    quiet: { [gauge("nodejs_eventloop_lag_p99_seconds")]: "0.02 0.4 0.02x60" },
  },
  ParleyDescriptorsShort: {
    atMinutes: 10,
    fires: { [gauge("process_open_fds")]: "900x60", [gauge("process_max_fds")]: "1024x60" },
    quiet: { [gauge("process_open_fds")]: "500x60", [gauge("process_max_fds")]: "1024x60" },
  },
  ParleyConnectionsRefused: {
    atMinutes: 15,
    fires: { [gauge("parley_connections_refused_total")]: "0+60x60" },
    quiet: { [gauge("parley_connections_refused_total")]: "0+5x60" },
  },
  ParleyLedgerBehind: {
    atMinutes: 10,
    fires: { [gauge("parley_ledger_lag_seconds")]: "0 0 30+60x60" },
    quiet: { [gauge("parley_ledger_lag_seconds")]: "0 30 0 5 0x60" },
  },
  ParleyDatabaseDown: {
    atMinutes: 5,
    fires: { [gauge("parley_database_up")]: "1 0x60" },
    quiet: { [gauge("parley_database_up")]: "1 0 1x60" },
  },
  ParleyDatabaseSlow: {
    atMinutes: 20,
    fires: buckets("parley_store_seconds", ',store="postgres",operation="ledger_write"', [1, 60]),
    // Redis has a rule of its own.
    quiet: {
      ...buckets("parley_store_seconds", ',store="redis",operation="rates_take"', [1, 60]),
      ...buckets("parley_store_seconds", ',store="postgres",operation="ledger_write"', [0.01, 98]),
    },
  },
  ParleyStoreFailing: {
    atMinutes: 10,
    fires: { [gauge("parley_store_errors_total", ',store="redis",operation="rates_take"')]: "0+30x60" },
    quiet: { [gauge("parley_store_errors_total", ',store="redis",operation="rates_take"')]: "0+1x60" },
  },
  ParleyLimitsLocal: {
    atMinutes: 5,
    fires: { [gauge("parley_rates_local")]: "0 1x60" },
    quiet: { [gauge("parley_rates_local")]: "0 1 0x60" },
  },
  ParleyKeyChangesUnheard: {
    atMinutes: 10,
    fires: { [gauge("parley_key_changes_heard")]: "1 0x60" },
    quiet: { [gauge("parley_key_changes_heard")]: "1 0 0 1x60" },
  },
  ParleyKeyFileOld: {
    atMinutes: 10,
    fires: { [gauge("parley_known_keys_file_age_seconds")]: "30+60x60" },
    quiet: { [gauge("parley_known_keys_file_age_seconds")]: "10 50 190 20 60x60" },
  },
  ParleyCostJump: {
    // From one day on 40 USD an hour in place of 10.
    atMinutes: 1_600,
    stepMinutes: 10,
    fires: { [gauge("parley_cost_micro_usd_total", `,model="chat"${TARGET}`)]: "0+1666660x144 240000000+6666660x30" },
    // Of next to nothing three times as much is next to nothing.
    quiet: { [gauge("parley_cost_micro_usd_total", `,model="chat"${TARGET}`)]: "0+16660x144 2400000+166660x30" },
  },
  ParleyCostUnreserved: {
    atMinutes: 90,
    fires: { [gauge("parley_reservation_overruns_total", TARGET)]: "_x70 1x60" },
    quiet: { [gauge("parley_reservation_overruns_total", TARGET)]: "3x120" },
  },
  ParleyCostEstimated: {
    atMinutes: 100,
    fires: {
      [attempts("served")]: "0+50x120",
      [gauge("parley_estimated_completions_total", TARGET)]: "0+25x120",
    },
    quiet: {
      [attempts("served")]: "0+50x120",
      [gauge("parley_estimated_completions_total", TARGET)]: "0+5x120",
    },
  },
};
