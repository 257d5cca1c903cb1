import { formatBudget, formatMicroUsd } from "../format/money.ts";

interface SpentProps {
  /** Undefined while loading, and without the permission to see it. */
  readonly micro: bigint | undefined;
  readonly budget: bigint | undefined;
}

/** Amount spent, with a progress bar if there is a budget. */
export function Spent({ micro, budget }: SpentProps) {
  if (micro === undefined) return "–";
  if (budget === undefined) return formatMicroUsd(micro);
  const share = budget === 0n ? 1 : Math.min(1, Number(micro) / Number(budget));
  const look = share >= 1 ? "bg-danger" : share >= 0.8 ? "bg-warn" : "bg-accent";
  const amounts = formatBudget({ spent: micro, budget });
  return (
    <span className="relative inline-block">
      {amounts.spent} of {amounts.budget}
      <span className="absolute inset-x-0 top-full block h-[3px] overflow-hidden rounded-full bg-line" aria-hidden>
        <span className={`block h-full rounded-full ${look}`} style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
