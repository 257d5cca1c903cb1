import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { money } from "../scripts/dashboards/money.ts";
import { FAULTS, overview } from "../scripts/dashboards/overview.ts";
import { processes } from "../scripts/dashboards/process.ts";
import { providers } from "../scripts/dashboards/providers.ts";
import { hasFailed } from "../src/gateway/spans.ts";
import { FAILURE_TABLE } from "../src/inbound/failure-table.ts";
import type { FailureCode } from "../src/core/failure.ts";
import { FleetMetrics } from "../src/telemetry/fleet-metrics.ts";
import { createMetrics, type MetricsSnapshot } from "../src/telemetry/metrics.ts";
import { attemptSample, completionSample, QUIET } from "./support/metrics.ts";

const read = (path: string): string => readFileSync(join(import.meta.dirname, "..", path), "utf8");

interface Row {
  readonly type: string;
  readonly labels: readonly string[];
  readonly meaning: string;
  readonly workers: string;
}

/** The table's rows, by the names of the metrics. */
const ROWS = new Map(
  read("docs/operations/monitoring.md")
    .split("\n")
    .filter((line) => /^\| `\w+` \| (counter|gauge|histogram) \|/.test(line))
    .map((line): [name: string, row: Row] => {
      const [, name = "", type = "", labels = "", meaning = "", workers = ""] = line
        .split("|")
        .map((cell) => cell.trim());
      const wordsOf = (cell: string): string[] => [...cell.matchAll(/`(\w+)`/g)].map(([, word = ""]) => word);
      return [wordsOf(name)[0]!, { type, labels: wordsOf(labels).toSorted(), meaning, workers }];
    }),
);

/** All metrics of a process, each with at least one value, and those of a parent of workers. */
async function everything(): Promise<MetricsSnapshot> {
  const metrics = createMetrics(
    {
      ...QUIET,
      breakers: () => new Map([["one/words", "open"]]),
      hedges: () => new Map([["chat", { started: 1, won: 1, refused: 1 }]]),
      retries: () => new Map([["one", { granted: 1, refused: 1, inFlight: 1 }]]),
      outliers: () => new Map([["chat", ["words"]]]),
      admission: () => ({ waiting: 0, limit: 512, memoryIsShort: false, refused: { queue: 1 } }),
      ratesFaults: () => new Map([["late", 1]]),
      replicas: () => 1,
      database: () => ({ up: true, listening: true }),
      answers: () => ({ bytes: 0, waiting: 0, ended: 0 }),
      contents: () => ({ stored: 0, dropped: 0, failed: 0 }),
      keyFileAgeMs: () => 1,
      info: { version: "1.0.0", schema: "9" },
    },
    { keys: 1, tags: 1 },
  );
  const caller = { key: "key_1", tags: new Set(["batch"]) };
  metrics.completion(
    completionSample({
      streamed: true,
      firstContentMs: 10,
      cachedTokens: 1,
      costMicroUsd: 1,
      isEstimated: true,
      isOverReserved: true,
      attempts: [attemptSample({ firstContentMs: 5 })],
      caller,
    }),
  );
  metrics.refusal("http", "rate_limited", caller);
  metrics.stored({ store: "redis", operation: "rates_take", durationMs: 1, failed: true });
  const fleet = new FleetMetrics({ ready: () => 1, replaced: () => 0 });
  return [...(await metrics.snapshot()), ...(await fleet.snapshot()).filter(({ name }) => name.startsWith("parley_"))];
}

const exposed = await everything();

describe("the table of metrics in docs/operations/monitoring.md", () => {
  it("has a row for each metric that is exposed, and no other", () => {
    expect([...ROWS.keys()].toSorted()).toEqual(exposed.map(({ name }) => name).toSorted());
  });

  it.each(exposed.map(({ name, type }) => [name, String(type)]))(
    "says that %s is a %s, and what it means",
    (name, type) => {
      expect(ROWS.get(name)).toMatchObject({ type, meaning: expect.stringMatching(/\w/) as string });
    },
  );

  // There may have been no garbage collection, and no request to the system.
  it.each(exposed.filter(({ values }) => values.length > 0).map(({ name, values }) => [name, values] as const))(
    "says which labels %s has",
    (name, values) => {
      const labels = new Set(values.flatMap((value) => Object.keys(value.labels)));
      labels.delete("le");
      expect(ROWS.get(name)!.labels).toEqual([...labels].toSorted());
    },
  );

  it("says which values of workers are not summed", () => {
    for (const { name, aggregator } of exposed.filter((metric) => metric.name.startsWith("parley_")))
      expect([name, ROWS.get(name)!.workers || "sum"]).toEqual([name, aggregator]);
  });
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = (parse(read("deploy/prometheus/alerts.yaml")) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);

/** Names of metrics in PromQL, without the suffixes of histograms. */
function metricsIn(expr: string): string[] {
  return [...expr.matchAll(/\b((?:parley|nodejs|process)_\w+)/g)].map(([, name = ""]) => {
    const bare = name.replace(/_(bucket|sum|count)$/, "");
    return ROWS.get(bare)?.type === "histogram" ? bare : name;
  });
}

describe("the alert rules", () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))("%s has all that a pager shows", (name, rule) => {
    expect(["critical", "warning"]).toContain(rule.labels["severity"]);
    const { summary, description, runbook_url: url } = rule.annotations;
    expect(summary!.length).toBeLessThan(120);
    expect(description).toMatch(/\.$/);
    expect(url).toBe(`docs/operations/runbooks.md#${name.toLowerCase()}`);
    expect(metricsIn(rule.expr).filter((metric) => !ROWS.has(metric))).toEqual([]);
  });

  it("each have a runbook that says what it means, what callers see, what to check and how to fix it", () => {
    const sections = read("docs/operations/runbooks.md").split(/^## /m).slice(1);
    expect(sections.map((section) => section.split("\n")[0])).toEqual(rules.map(({ alert }) => alert));
    for (const section of sections)
      expect([...section.matchAll(/^\*\*([\w ]+)\*\*/gm)].map(([, word]) => word)).toEqual([
        "Means",
        "Callers see",
        "Check",
        "Fix",
      ]);
  });

  it("count as failed what is the fault of Parley or a provider, a provider's 429 among them", () => {
    const isFault = (outcome: FailureCode): boolean => hasFailed({ outcome }) || outcome === "upstream_rate_limited";
    const faults = (Object.keys(FAILURE_TABLE) as FailureCode[]).filter(isFault);
    expect(FAULTS.split("|").toSorted()).toEqual(faults.toSorted());
    expect(rules.find(({ alert }) => alert === "ParleyCompletionsFailing")!.expr).toContain(`outcome=~"${FAULTS}"`);
  });
});

describe("the dashboards", () => {
  it.each([overview, providers, money, processes].map((dashboard) => [dashboard.uid!, dashboard] as const))(
    "%s is as scripts/dashboards has it (npm run dashboards), and asks for metrics that there are",
    (uid, dashboard) => {
      const text = read(`deploy/grafana/dashboards/${uid}.json`);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(dashboard)));
      const exprs = [...text.matchAll(/"expr": (".*"),?$/gm)].map(([, expr = ""]) => JSON.parse(expr) as string);
      expect(exprs.length).toBeGreaterThan(5);
      expect(exprs.flatMap(metricsIn).filter((metric) => !ROWS.has(metric))).toEqual([]);
      expect(exprs.filter((expr) => !expr.includes('job="parley",instance=~"$instance"'))).toEqual([]);
    },
  );
});
