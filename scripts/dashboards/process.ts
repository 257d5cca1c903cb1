import { dashboard, graph, of, quantileBy, rateBy } from "./panels.ts";

/** State of processes, the ledger, the database and Redis. */
export const processes = dashboard({
  uid: "parley-process",
  title: "Process and stores",
  description: "Event loop, garbage collection and memory of each replica; the ledger, the database and Redis.",
  sections: [
    {
      title: "Process",
      panels: [
        graph("CPU", [[rateBy("instance", "process_cpu_seconds_total"), "{{instance}}"]], {
          about: "Processors in use; with workers of all of them.",
        }),
        graph("Event loop lag, 99th percentile", [[`nodejs_eventloop_lag_p99_seconds${of()}`, "{{instance}}"]], {
          unit: "s",
          about: "With its timer’s 10 ms; of the worst worker.",
        }),
        graph(
          "Garbage collection",
          [[rateBy("instance, kind", "nodejs_gc_duration_seconds_sum"), "{{instance}} {{kind}}"]],
          {
            unit: "percentunit",
            about: "Share of the time.",
          },
        ),
        graph(
          "Memory",
          [
            [`process_resident_memory_bytes${of()}`, "{{instance}} resident"],
            [`nodejs_heap_size_used_bytes${of()}`, "{{instance}} heap"],
            [`nodejs_external_memory_bytes${of()}`, "{{instance}} buffers"],
          ],
          { unit: "bytes" },
        ),
        graph("Memory is short", [[`parley_memory_short${of()}`, "{{instance}}"]]),
        graph("Open descriptors", [[`process_open_fds${of()} / process_max_fds${of()}`, "{{instance}}"]], {
          unit: "percentunit",
        }),
        graph("Connections closed", [[rateBy("instance", "parley_connections_refused_total"), "{{instance}}"]], {
          unit: "reqps",
        }),
        graph(
          "Workers",
          [
            [`parley_workers_ready${of()}`, "{{instance}} serving"],
            [`increase(parley_workers_replaced_total${of()}[$__rate_interval])`, "{{instance}} replaced"],
          ],
          { about: "Only where workers is more than 1." },
        ),
        graph("Versions", [[`count by (version, schema) (parley_info${of()})`, "{{version}}, schema {{schema}}"]]),
      ],
    },
    {
      title: "Ledger and database",
      panels: [
        graph("Entries that wait", [[`parley_ledger_waiting${of()}`, "{{instance}}"]]),
        graph("Oldest entry that waits", [[`parley_ledger_lag_seconds${of()}`, "{{instance}}"]], { unit: "s" }),
        graph(
          "Writes of the ledger, 95th percentile",
          [[quantileBy("instance", [0.95, "parley_store_seconds"], 'operation="ledger_write"'), "{{instance}}"]],
          {
            unit: "s",
            about: "Answers wait for them.",
          },
        ),
        graph("Calls", [[rateBy("operation", "parley_store_seconds_count", 'store!="redis"'), "{{operation}}"]], {
          unit: "reqps",
        }),
        graph(
          "Duration, 95th percentile",
          [[quantileBy("operation", [0.95, "parley_store_seconds"], 'store!="redis"'), "{{operation}}"]],
          {
            unit: "s",
          },
        ),
        graph("Reachable", [
          [`parley_database_up${of()}`, "{{instance}}"],
          [`parley_key_changes_heard${of()}`, "{{instance}} hears of keys"],
        ]),
      ],
    },
    {
      title: "Limits and Redis",
      panels: [
        graph(
          "Calls of Redis",
          [[rateBy("operation", "parley_store_seconds_count", 'store="redis"'), "{{operation}}"]],
          { unit: "reqps" },
        ),
        graph(
          "Duration of calls of Redis, 95th percentile",
          [[quantileBy("operation", [0.95, "parley_store_seconds"], 'store="redis"'), "{{operation}}"]],
          {
            unit: "s",
          },
        ),
        graph(
          "Failed calls of stores",
          [[rateBy("store, operation", "parley_store_errors_total"), "{{store}} {{operation}}"]],
          {
            unit: "reqps",
            about: "None is shown while none has failed.",
          },
        ),
        graph("Limits counted alone", [[`parley_rates_local${of()}`, "{{instance}}"]]),
        graph(
          "Requests decided on alone",
          [[rateBy("instance", "parley_rates_local_decisions_total"), "{{instance}}"]],
          { unit: "reqps" },
        ),
        graph("Replicas seen", [[`parley_replicas${of()}`, "{{instance}}"]], {
          about: "Each process, also a worker, counts as one.",
        }),
      ],
    },
  ],
});
