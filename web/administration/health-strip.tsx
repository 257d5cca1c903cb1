import { useState } from "react";
import { formatDuration } from "../format/duration.ts";
import type { Health } from "../format/health.ts";
import { type Cell, LATENCIES, type Strip } from "./target-periods.ts";

const CELL = 5;
const GAP = 1;

type Bar = readonly [height: number, fill: string];

interface BarsProps {
  readonly cells: readonly Cell[];
  /** Text alternative. */
  readonly label: string;
  readonly height: number;
  /** Bars of a cell; the last one is in front. */
  readonly barsOf: (cell: Cell) => readonly Bar[];
  /** Reports the cell under the pointer. */
  readonly onCell?: ((index: number | undefined) => void) | undefined;
  readonly marked?: number | undefined;
}

function Bars({ cells, label, height, barsOf, onCell, marked }: BarsProps) {
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${cells.length * CELL - GAP} ${height}`}
      preserveAspectRatio="none"
      className="w-full"
      style={{ height }}
      onPointerLeave={() => onCell?.(undefined)}
    >
      {cells.map((cell, index) => (
        <g key={cell.startMs} onPointerEnter={() => onCell?.(index)}>
          <title>{cell.text}</title>
          {/* The whole height reacts to the pointer. */}
          <rect
            x={index * CELL}
            width={CELL}
            height={height}
            className={marked === index ? "fill-line" : "fill-transparent"}
          />
          {barsOf(cell).map(([barHeight, fill]) => (
            <rect
              key={fill}
              x={index * CELL}
              y={height - barHeight}
              width={CELL - GAP}
              height={barHeight}
              className={fill}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

const HEALTH_HEIGHT = 20;

/** Height and colour: the height tells the health without the colour. */
const LOOKS: Partial<Record<Health, Bar>> = {
  healthy: [8, "fill-good"],
  degraded: [14, "fill-warn"],
  failing: [HEALTH_HEIGHT, "fill-danger"],
};
const NOTHING: Bar = [2, "fill-edge"];

interface HealthStripProps extends Pick<BarsProps, "onCell" | "marked"> {
  readonly strip: Strip;
  /** What it shows: `Last 24 hours`. */
  readonly label: string;
}

/** Health over time: a bar for each step, the higher the worse. */
export function HealthStrip({ strip: { cells, summary }, label, ...rest }: HealthStripProps) {
  return (
    <Bars
      {...rest}
      cells={cells}
      label={`${label}: ${summary}`}
      height={HEALTH_HEIGHT}
      barsOf={({ health }) => [(health && LOOKS[health]) ?? NOTHING]}
    />
  );
}

const LATENCY_HEIGHT = 32;

interface LatencyStripProps extends Pick<BarsProps, "cells" | "onCell" | "marked"> {
  readonly of: (typeof LATENCIES)[number][0];
  readonly name: string;
  /** What it shows: `last 24 hours`. */
  readonly when: string;
}

/** Latency over time: a bar of the 95th percentile for each step, and in front of it that of the median. Renders nothing without any. */
function LatencyStrip({ of, name, when, ...rest }: LatencyStripProps) {
  const highestMs = Math.max(...rest.cells.map((cell) => cell[of]?.p95Ms ?? 0));
  if (highestMs === 0) return null;
  const barOf = (ms: number, fill: string): Bar => [Math.max((ms / highestMs) * LATENCY_HEIGHT, 1), fill];
  const highest = `p95 up to ${formatDuration(highestMs)}`;
  return (
    <div className="mt-2">
      <p className="flex flex-wrap items-center gap-x-1.5 text-xs text-muted">
        {name}
        <span aria-hidden className="size-2 bg-accent" /> p50
        <span aria-hidden className="size-2 bg-edge" /> {highest}
      </p>
      <Bars
        {...rest}
        label={`${name}, ${when}: ${highest}`}
        height={LATENCY_HEIGHT}
        barsOf={({ [of]: latency }) =>
          latency === undefined ? [] : [barOf(latency.p95Ms, "fill-edge"), barOf(latency.p50Ms, "fill-accent")]
        }
      />
    </div>
  );
}

/** Strips of health and of latencies with the numbers of the cell under the pointer, or chosen by keyboard. */
export function ReadableStrip({ strip, label }: Pick<HealthStripProps, "strip" | "label">) {
  const [index, setIndex] = useState<number>();
  const last = strip.cells.length - 1;
  const shown = index === undefined ? undefined : strip.cells[index];
  const marking = { onCell: setIndex, marked: index };
  return (
    <div className="min-w-0">
      <p className="text-xs text-muted">{label}</p>
      <div className="mt-1 max-w-3xl">
        <HealthStrip strip={strip} label={label} {...marking} />
        {LATENCIES.map(([of, name]) => (
          <LatencyStrip key={of} of={of} name={name} when={label.toLowerCase()} cells={strip.cells} {...marking} />
        ))}
      </div>
      <input
        type="range"
        aria-label={`Values of ${label.toLowerCase()}`}
        aria-valuetext={shown?.text ?? strip.summary}
        min={0}
        max={last}
        value={index ?? last}
        onChange={(event) => setIndex(Number(event.target.value))}
        onFocus={() => setIndex((before) => before ?? last)}
        onBlur={() => setIndex(undefined)}
        className="sr-only accent-accent focus:not-sr-only focus:w-full focus:max-w-3xl"
      />
      <p className="mt-1 min-h-5 text-sm wrap-anywhere">{shown?.text ?? `${strip.summary}.`}</p>
    </div>
  );
}
