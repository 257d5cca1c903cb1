import { useMemo } from "react";
import type { UsageRow } from "../../gen/parley/console/v1/usage_pb.js";
import type { PreviousSums, UsageFilter } from "../api/usage.ts";
import { changeOf, describeChange } from "./change.tsx";
import type { TableContent } from "./data-table.tsx";
import { logLink } from "./log-link.ts";
import type { Measure } from "./measures.ts";
import { GROUPING_NAMES, groupName } from "./names.ts";
import { type Before, type ChartContent, Plot } from "./plot.tsx";
import { groupSeries, type Series, sum, totalSeries } from "./series.ts";
import { endOfStep, type Step, stepsOf } from "./steps.ts";
import { fileName, fullStep, isoStep } from "./times.ts";
import type { Grouping } from "./view.ts";

interface SumsPlotProps {
  readonly measure: Measure;
  /** Sums by group and step. */
  readonly rows: readonly UsageRow[];
  /** Groups in descending order of cost. */
  readonly order: readonly string[];
  readonly filter: UsageFilter;
  readonly step: Step;
  readonly by: Grouping;
  /** Sums of the period to compare with. */
  readonly previous: PreviousSums | undefined;
}

/** Chart of one measure, split by group, or by parts without grouping, with the total of the previous period. */
export function SumsPlot({ measure, rows, order, filter, step, by, previous }: SumsPlotProps) {
  const content = useMemo((): ChartContent => {
    const steps = stepsOf(filter, step);
    const series =
      by === "none"
        ? measure.parts.map(([name, of, colour]) => totalSeries(rows, { steps, of, name, colour }))
        : groupSeries(rows, { steps, order, of: measure.of, nameOf: (row) => groupName(by, row) });
    const before = previous && beforeOf(previous, { of: measure.of, step });
    return { steps, step, series, before, kind: "bars", format: measure.formatShort };
  }, [measure, rows, order, filter, step, by, previous]);
  return (
    <Plot
      title={measure.title}
      content={content}
      summary={describe(measure, content, by)}
      formatFull={measure.format}
      overall={({ values }) => sum(values)}
      table={tableOf(measure, content, { filter, by })}
    />
  );
}

/** The total of a measure in the period to compare with. Its steps correspond to those of the chart in their order. */
function beforeOf(
  { span, rows }: PreviousSums,
  { of, step }: { readonly of: Measure["of"]; readonly step: Step },
): Before {
  const steps = stepsOf(span, step);
  return { steps, values: totalSeries(rows, { steps, of, name: "", colour: 7 }).values };
}

function describe({ title, format }: Measure, { steps, step, series, before }: ChartContent, by: Grouping): string {
  const totals = totalsOf(steps, series);
  const most = totals.indexOf(Math.max(...totals));
  const ago = before && sum(before.values);
  const compared =
    ago === undefined ? "" : `Previous period: ${format(ago)} (${describeChange(changeOf(sum(totals), ago))} now). `;
  const split = by === "none" ? "" : ` by ${GROUPING_NAMES[by].toLowerCase()}`;
  return (
    `${title}${split}, ${step.each}: ${format(sum(totals))} total, peak on ${fullStep(steps[most]!, step)} ` +
    `with ${format(totals[most]!)}. ${compared}The table below has all values.`
  );
}

function tableOf(
  measure: Measure,
  { steps, step, series, before }: ChartContent,
  { filter, by }: { readonly filter: UsageFilter; readonly by: Grouping },
): TableContent {
  const { title, format, toCsv, csvUnit } = measure;
  const totals = totalsOf(steps, series);
  const hasTotal = series.length > 1;
  const withTotal = <T,>(cells: readonly T[], total: T, ago: (values: Before["values"]) => T): readonly T[] => [
    ...cells,
    ...(hasTotal ? [total] : []),
    ...(before === undefined ? [] : [ago(before.values)]),
  ];
  const names = withTotal(
    series.map(({ name }) => name),
    "Total",
    () => "Previous period",
  );
  return {
    label: `${title} over time`,
    columns: [
      { id: "step", name: step.column },
      ...withTotal(
        series.map(({ id, name }) => ({ id: `of ${id}`, name })),
        { id: "total", name: "Total" },
        () => ({ id: "previous", name: "Previous period" }),
      ),
    ],
    rows: steps
      .map((atMs, index) => ({
        id: String(atMs),
        name: fullStep(atMs, step),
        href: totals[index] === 0 ? undefined : logLink({ ...filter, sinceMs: atMs, untilMs: endOfStep(atMs, step) }),
        cells: withTotal(
          series.map(({ values }) => format(values[index] ?? 0)),
          format(totals[index]!),
          (values) => format(values[index] ?? 0),
        ),
      }))
      .toReversed(),
    total: withTotal(
      series.map(({ values }) => format(sum(values))),
      format(sum(totals)),
      (values) => format(sum(values)),
    ),
    csv: {
      name: fileName([csvUnit, by === "none" ? "" : `by-${by}`, step.each.replaceAll(" ", "-")], filter),
      rows: () => [
        [step.csvColumn, ...names.map((name) => `${name} (${csvUnit})`)],
        ...steps.map((atMs, index) => [
          isoStep(atMs, step),
          ...withTotal(
            series.map(({ values }) => toCsv(values[index] ?? 0)),
            toCsv(totals[index]!),
            (values) => toCsv(values[index] ?? 0),
          ),
        ]),
      ],
    },
  };
}

/** Returns the total of all series per step. */
function totalsOf(steps: readonly number[], series: readonly Series[]): number[] {
  return steps.map((_, index) => sum(series.map(({ values }) => values[index])));
}
