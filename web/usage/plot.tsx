import { useEffect, useEffectEvent, useRef, useState, useSyncExternalStore } from "react";
import { useLocation } from "wouter";
import { onThemeChange, shownTheme } from "../theme.ts";
import { Panel } from "../components/panel.tsx";
import { type Change, changeOf, ChangeText } from "./change.tsx";
import type { Chart } from "./chart.ts";
import { DataTable, type TableContent } from "./data-table.tsx";
import { type Colour, type Series, sum } from "./series.ts";
import type { Step } from "./steps.ts";
import { fullStep } from "./times.ts";

/** Content of a chart. */
export interface ChartContent {
  /** Start times of the steps, in Unix milliseconds. */
  readonly steps: readonly number[];
  readonly step: Step;
  readonly series: readonly Series[];
  /** Bars are stacked, lines are not. */
  readonly kind: "bars" | "lines";
  /** Compact format for the axis. */
  readonly format: (value: number) => string;
  /** Total of the previous period; undefined without comparison. */
  readonly before?: Before | undefined;
}

/** The previous period, whose steps correspond to those of the chart in their order. */
export interface Before {
  /** Start times, in Unix milliseconds. */
  readonly steps: readonly number[];
  readonly values: readonly (number | undefined)[];
}

interface PlotProps {
  readonly title: string;
  readonly description?: string;
  readonly content: ChartContent;
  /** Text alternative of the chart. */
  readonly summary: string;
  /** Full format for the legend. */
  readonly formatFull: (value: number) => string;
  /** Value in the legend while no step is selected; undefined for none. */
  readonly overall: (series: Series) => number | undefined;
  readonly table: TableContent;
}

const SWATCHES: Readonly<Record<Colour, string>> = {
  1: "bg-chart-1",
  2: "bg-chart-2",
  3: "bg-chart-3",
  4: "bg-chart-4",
  5: "bg-chart-5",
  6: "bg-chart-6",
  7: "bg-chart-7",
  failed: "bg-danger",
};

/** Chart over time with a legend of values and a data table. */
export function Plot({ title, description, content, summary, formatFull, overall, table }: PlotProps) {
  const [step, setStep] = useState<number>();
  const theme = useSyncExternalStore(onThemeChange, shownTheme);
  const at = step === undefined ? undefined : content.steps[step];
  const [, navigate] = useLocation();
  const hrefOf = (index: number): string | undefined =>
    table.rows.find(({ id }) => id === String(content.steps[index]))?.href;
  const open = (index: number): void => {
    const href = hrefOf(index);
    if (href !== undefined) navigate(href);
  };
  const href = step === undefined ? undefined : hrefOf(step);
  const read = (series: Series): string => {
    const value = at === undefined ? overall(series) : series.values[step!];
    return value === undefined ? "–" : formatFull(value);
  };
  const before = readBefore(content, step, formatFull);
  return (
    <Panel title={title} {...(description !== undefined && { description })}>
      <Legend
        series={content.series}
        moment={at === undefined ? "Whole period" : fullStep(at, content.step)}
        hint={href === undefined ? "" : " · click for its requests"}
        read={read}
        before={before}
      />
      <div className={href === undefined ? "" : "[&_.u-over]:cursor-pointer"}>
        <Canvas key={theme} content={content} summary={summary} step={step} onStep={setStep} onPick={open} />
      </div>
      <input
        type="range"
        aria-label={`Values of ${title.toLowerCase()}; Enter shows the requests`}
        aria-valuetext={
          at === undefined
            ? "Whole period"
            : `${fullStep(at, content.step)}: ${[
                ...content.series.map((series) => `${series.name} ${read(series)}`),
                ...(before === undefined ? [] : [`${before.name} ${before.value}`]),
              ].join(", ")}`
        }
        min={0}
        max={content.steps.length - 1}
        value={step ?? content.steps.length - 1}
        onChange={(event) => setStep(Number(event.target.value))}
        onFocus={() => setStep((shown) => shown ?? content.steps.length - 1)}
        onBlur={() => setStep(undefined)}
        onKeyDown={(event) => event.key === "Enter" && step !== undefined && open(step)}
        className="sr-only accent-accent focus:not-sr-only focus:w-full"
      />
      <DataTable {...table} />
    </Panel>
  );
}

/** The previous period in the legend. */
interface ReadBefore {
  readonly name: string;
  readonly value: string;
  readonly change: Change;
}

function readBefore(
  { step: { lengthMs }, steps, series, before }: ChartContent,
  step: number | undefined,
  format: (value: number) => string,
): ReadBefore | undefined {
  if (before === undefined) return undefined;
  if (step === undefined) {
    const [now, ago] = [sum(series.flatMap(({ values }) => values)), sum(before.values)];
    return { name: "Previous period", value: format(ago), change: changeOf(now, ago) };
  }
  const [atMs, ago] = [before.steps[step], before.values[step]];
  if (steps[step] === undefined || atMs === undefined || ago === undefined) return undefined;
  const now = sum(series.map(({ values }) => values[step]));
  return { name: fullStep(atMs, { lengthMs }), value: format(ago), change: changeOf(now, ago) };
}

interface LegendProps {
  readonly series: readonly Series[];
  readonly moment: string;
  /** Effect of a click. */
  readonly hint: string;
  readonly read: (series: Series) => string;
  readonly before: ReadBefore | undefined;
}

function Legend({ series, moment, hint, read, before }: LegendProps) {
  return (
    <div className="mb-3 text-sm">
      <p className="text-muted">
        {moment}
        <span aria-hidden>{hint}</span>
      </p>
      <ul className="mt-1 flex flex-wrap gap-x-5 gap-y-1">
        {series.map((each) => (
          <li key={each.id} className="flex min-w-0 items-center gap-2">
            <span aria-hidden className={`size-2.5 shrink-0 rounded-xs ${SWATCHES[each.colour]}`} />
            <bdi className="max-w-56 truncate" title={each.name}>
              {each.name}
            </bdi>
            <span className="font-medium whitespace-nowrap tabular-nums">{read(each)}</span>
          </li>
        ))}
        {before !== undefined && (
          <li className="flex items-center gap-2">
            <span aria-hidden className="w-4 shrink-0 border-t-2 border-dashed border-ink" />
            <span>{before.name}</span>
            <span className="font-medium whitespace-nowrap tabular-nums">{before.value}</span>
            <span className="whitespace-nowrap text-muted tabular-nums">
              <ChangeText change={before.change} />
            </span>
          </li>
        )}
      </ul>
    </div>
  );
}

interface CanvasProps {
  readonly content: ChartContent;
  readonly summary: string;
  readonly step: number | undefined;
  readonly onStep: (step: number | undefined) => void;
  readonly onPick: (step: number) => void;
}

/** Canvas of the chart. The chart library is loaded when the first chart is shown. */
function Canvas({ content, summary, step, onStep, onPick }: CanvasProps) {
  const pick = useEffectEvent(onPick);
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart>(undefined);
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    const target = element.current!;
    let observer: ResizeObserver | undefined;
    let isGone = false;
    const start = async (): Promise<void> => {
      const { drawChart } = await import("./chart.ts");
      if (isGone) return;
      // Also reports the initial width.
      observer = new ResizeObserver(() => {
        chart.current?.destroy();
        chart.current = drawChart(target, {
          content,
          width: target.clientWidth,
          onStep,
          onPick: (index) => pick(index),
        });
      });
      observer.observe(target);
    };
    start().catch(() => setMissing(true));
    return () => {
      isGone = true;
      observer?.disconnect();
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [content, onStep]);
  useEffect(() => chart.current?.mark(step), [step]);
  if (isMissing) return <p className="text-sm text-muted">Could not load the chart. The table has all values.</p>;
  return (
    <div role="img" aria-label={summary} className="relative h-55 overflow-hidden">
      {/* Positioned absolutely, because a wide canvas would prevent the layout from shrinking. */}
      <div ref={element} className="absolute inset-0" />
    </div>
  );
}
