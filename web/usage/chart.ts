import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import type { ChartContent } from "./plot.tsx";
import { HOUR_MS, MINUTE_MS } from "./steps.ts";
import { axisOf, shortStep } from "./times.ts";

/** A rendered chart. */
export interface Chart {
  /** Highlights a step; undefined removes the highlight. */
  mark(index: number | undefined): void;
  destroy(): void;
}

const HEIGHT = 220;
/** Bars narrower than this have no space for borders. */
const NARROW_PX = 12;
const TICKS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24, 84 * 24].map((hours) => hours * HOUR_MS),
];

/** Renders a chart into an element. `onStep` reports the step under the pointer, `onPick` one that was clicked. */
export function drawChart(
  element: HTMLElement,
  {
    content,
    width,
    onStep,
    onPick,
  }: {
    readonly content: ChartContent;
    readonly width: number;
    readonly onStep: (step: number | undefined) => void;
    readonly onPick: (step: number) => void;
  },
): Chart {
  const { steps, step, series, before, kind, format } = content;
  const { lengthMs } = step;
  const { positions, timeAt } = axisOf(steps, step);
  const colour = (name: string): string =>
    getComputedStyle(document.documentElement).getPropertyValue(`--color-${name}`).trim();
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const [muted, line, surface, ink] = ["muted", "line", "surface", "ink"].map(colour);
  const isNarrow = width / steps.length < NARROW_PX;
  const styles = series.map(({ name, colour: place, isDashed }): uPlot.Series => {
    const own = colour(place === "failed" ? "danger" : `chart-${place}`);
    if (kind === "lines") {
      const dash = isDashed ? { dash: [6, 4] } : {};
      return { label: name, stroke: own, width: 2, ...dash, points: { show: !isNarrow, size: 5, fill: own } };
    }
    const paths = uPlot.paths.bars!({ size: [isNarrow ? 0.9 : 0.75, 56] });
    return { label: name, fill: own, stroke: surface!, width: isNarrow ? 0 : 1, paths, points: { show: false } };
  });
  // A dashed line over the bars, with an edge that separates it from their colours.
  const points = { show: steps.length === 1, size: 6, fill: ink! };
  const lines: uPlot.Series[] = before
    ? [
        { stroke: surface!, width: 4, points: { show: false } },
        { stroke: ink!, width: 2, dash: [5, 4], points },
      ]
    : [];
  const ago = before && steps.map((_, index) => before.values[index] ?? null);
  // Stacked bars: each cumulative bar is drawn from zero, the highest first and lower ones over it.
  const order = kind === "bars" ? series.map((_, index) => series.length - 1 - index) : series.map((_, index) => index);
  const values = kind === "bars" ? stacked(content) : series.map((each) => each.values.map((value) => value ?? null));
  const axis = { stroke: muted!, font, ticks: { show: false }, grid: { stroke: line!, width: 1 } };
  const plot = new uPlot(
    {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, range: () => [positions[0]!, positions.at(-1)! + lengthMs] },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      series: [{}, ...order.map((index) => styles[index]!), ...lines],
      axes: [
        {
          ...axis,
          grid: { show: false },
          // Keeps the labels below the lowest label of the y axis.
          gap: 14,
          size: 36,
          incrs: TICKS_MS.filter((tickMs) => tickMs >= lengthMs),
          space: 64,
          values: (_plot, splits) => splits.map((position) => shortStep(timeAt(position), step)),
        },
        { ...axis, size: widthOf, space: 36, values: (_plot, splits) => splits.map((value) => format(value)) },
      ],
      hooks: {
        setCursor: [({ cursor: { idx, left } }) => onStep(left == null || left < 0 ? undefined : (idx ?? undefined))],
      },
    },
    [
      positions.map((position) => position + lengthMs / 2),
      ...order.map((index) => values[index]!),
      ...lines.map(() => ago!),
    ],
    element,
  );
  plot.over.addEventListener("click", () => {
    const { idx } = plot.cursor;
    if (idx != null) onPick(idx);
  });
  return {
    mark(index) {
      const left = index === undefined ? -10 : plot.valToPos(positions[index]! + lengthMs / 2, "x");
      plot.setCursor({ left, top: index === undefined ? -10 : 0 }, false);
    },
    destroy: () => plot.destroy(),
  };
}

/** Room for the labels of the y axis, in pixels. */
function widthOf(_plot: uPlot, labels: readonly string[] | null): number {
  return Math.max(...(labels ?? []).map((label) => label.length), 3) * 7 + 20;
}

/** Returns cumulative values of each series. A zero value is null, because its edge would be drawn otherwise. */
function stacked({ steps, series }: ChartContent): (number | null)[][] {
  const sums = steps.map(() => 0);
  return series.map(({ values }) =>
    values.map((value = 0, step) => {
      sums[step] = sums[step]! + value;
      return value === 0 ? null : sums[step];
    }),
  );
}
