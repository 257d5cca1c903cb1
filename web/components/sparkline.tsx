const WIDTH = 240;
const HEIGHT = 44;

interface SparklineProps {
  /** Undefined for a step without a value. */
  readonly values: readonly (number | undefined)[];
  /** Values to compare with, drawn as a dashed line. */
  readonly before?: readonly (number | undefined)[] | undefined;
  readonly kind: "bars" | "line";
  /** Text alternative. */
  readonly label: string;
  readonly look?: "accent" | "danger";
}

const FILLS = { accent: "fill-accent", danger: "fill-danger" } as const;
const STROKES = { accent: "stroke-accent", danger: "stroke-danger" } as const;

const NONE: readonly number[] = [];
const LINE = { fill: "none", strokeLinejoin: "round", vectorEffect: "non-scaling-stroke" } as const;

/** A run of values without a gap. */
interface Line {
  /** Index of its first value. */
  readonly from: number;
  readonly values: readonly number[];
}

/** A small chart without axes, from zero to the largest value. */
export function Sparkline({ values, before = NONE, kind, label, look = "accent" }: SparklineProps) {
  const largest = Math.max(...[...values, ...before].map((value = 0) => value), 0);
  const step = WIDTH / Math.max(values.length, 1);
  const heightOf = (value: number): number => (largest === 0 ? 0 : (value / largest) * (HEIGHT - 3));
  const pointsOf = (line: Line): string =>
    line.values
      .map((value, index) => `${(line.from + index + 0.5) * step},${HEIGHT - 1.5 - heightOf(value)}`)
      .join(" ");
  const bars = values.map((value = 0, index) => ({ x: (index + 0.12) * step, height: heightOf(value) }));
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      className="h-11 w-full overflow-visible"
    >
      <line
        x1={0}
        x2={WIDTH}
        y1={HEIGHT}
        y2={HEIGHT}
        className="stroke-line"
        strokeWidth={1}
        vectorEffect="non-scaling-stroke"
      />
      {kind === "bars"
        ? bars.map(({ x, height }) => (
            <rect key={x} x={x} width={step * 0.76} y={HEIGHT - height} height={height} className={FILLS[look]} />
          ))
        : linesOf(values).map((line) => (
            <polyline
              key={line.from}
              points={pointsOf(line)}
              {...LINE}
              strokeWidth={2}
              strokeLinecap="round"
              className={STROKES[look]}
            />
          ))}
      {linesOf(before).map((line) => (
        <g key={line.from}>
          {/* An edge that separates the line from the bars. */}
          <polyline points={pointsOf(line)} {...LINE} strokeWidth={3.5} className="stroke-surface" />
          <polyline points={pointsOf(line)} {...LINE} strokeWidth={1.5} strokeDasharray="4 3" className="stroke-ink" />
        </g>
      ))}
    </svg>
  );
}

/**
 * Returns each run of values without a gap, with the index of its first value. A single value is repeated, so that it
 * is drawn as a short line.
 */
function linesOf(values: readonly (number | undefined)[]): Line[] {
  const lines: { from: number; values: number[] }[] = [];
  for (const [index, value] of values.entries()) {
    if (value === undefined) continue;
    const last = lines.at(-1);
    if (last !== undefined && last.from + last.values.length === index) last.values.push(value);
    else lines.push({ from: index, values: [value] });
  }
  return lines.map((line) =>
    line.values.length === 1 ? { ...line, values: [line.values[0]!, line.values[0]!] } : line,
  );
}
