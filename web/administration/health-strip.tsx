import { useState } from "react";
import type { Health } from "../format/health.ts";
import type { Strip } from "./target-periods.ts";

const HEIGHT = 20;
const CELL = 5;
const GAP = 1;

/** Height and colour: the height tells the health without the colour. */
const LOOKS: Partial<Record<Health, readonly [height: number, fill: string]>> = {
  healthy: [8, "fill-good"],
  degraded: [14, "fill-warn"],
  failing: [HEIGHT, "fill-danger"],
};
const NOTHING = [2, "fill-edge"] as const;

interface HealthStripProps {
  readonly strip: Strip;
  /** What it shows: `Last 24 hours`. */
  readonly label: string;
  /** Reports the cell under the pointer. */
  readonly onCell?: (index: number | undefined) => void;
  readonly marked?: number | undefined;
}

/** Health over time: a bar for each step, the higher the worse. */
export function HealthStrip({ strip: { cells, summary }, label, onCell, marked }: HealthStripProps) {
  return (
    <svg
      role="img"
      aria-label={`${label}: ${summary}`}
      viewBox={`0 0 ${cells.length * CELL - GAP} ${HEIGHT}`}
      preserveAspectRatio="none"
      className="h-5 w-full"
      onPointerLeave={() => onCell?.(undefined)}
    >
      {cells.map(({ startMs, health, text }, index) => {
        const [height, fill] = (health && LOOKS[health]) ?? NOTHING;
        return (
          <g key={startMs} onPointerEnter={() => onCell?.(index)}>
            <title>{text}</title>
            {/* The whole height reacts to the pointer. */}
            <rect
              x={index * CELL}
              width={CELL}
              height={HEIGHT}
              className={marked === index ? "fill-line" : "fill-transparent"}
            />
            <rect x={index * CELL} y={HEIGHT - height} width={CELL - GAP} height={height} className={fill} />
          </g>
        );
      })}
    </svg>
  );
}

/** A strip with the numbers of the cell under the pointer, or chosen by keyboard. */
export function ReadableStrip({ strip, label }: Pick<HealthStripProps, "strip" | "label">) {
  const [index, setIndex] = useState<number>();
  const last = strip.cells.length - 1;
  const shown = index === undefined ? undefined : strip.cells[index];
  return (
    <div className="min-w-0">
      <p className="text-xs text-muted">{label}</p>
      <div className="mt-1 max-w-3xl">
        <HealthStrip strip={strip} label={label} onCell={setIndex} marked={index} />
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
