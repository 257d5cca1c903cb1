/** US dollars. */
const USD = { style: "currency", currency: "USD" } as const;

/** Amounts of one budget, in micro-USD. */
export interface BudgetAmounts {
  readonly spent: bigint;
  readonly held?: bigint;
  readonly budget: bigint;
}

/** The amounts as texts: `$0.00015`. */
export interface FormattedBudget {
  readonly spent: string;
  readonly held: string;
  readonly budget: string;
  readonly left: string;
}

/**
 * Returns the function that formats the amounts of a budget, which are shown side by side, with as many digits as the smallest
 * part needs: `$0.00015` of `$0.02`, `$0.01985` left. The budget is exact, what is taken is rounded up and what is left down, so
 * that a budget with something left never looks spent.
 */
export function budgetFormat(locale: string | undefined): (amounts: BudgetAmounts) => FormattedBudget {
  /** Without zeros after the cents. */
  const exact = new Intl.NumberFormat(locale, { ...USD, minimumFractionDigits: 2, maximumFractionDigits: 6 });
  /** By the number of digits after the point: a micro-USD has six. */
  const fixed = Array.from(
    { length: 7 },
    (_, digits) =>
      new Intl.NumberFormat(locale, { ...USD, minimumFractionDigits: digits, maximumFractionDigits: digits }),
  );
  return ({ spent, held = 0n, budget }) => {
    const rest = budget - spent - held;
    const digits = Math.max(...[spent, held, rest < 0n ? -rest : rest].map(digitsOf));
    const step = 10n ** BigInt(6 - digits);
    const format = (micro: bigint): string => fixed[digits]!.format(Number(micro * step) / 1e6);
    const taken = (micro: bigint): string => format((micro + step - 1n) / step);
    return {
      spent: taken(spent),
      held: taken(held),
      budget: exact.format(Number(budget) / 1e6),
      left: format((rest < 0n ? 0n : rest) / step),
    };
  };
}

/** Returns the digits after the point that show the amount exactly, or its first two digits. At least cents. */
function digitsOf(micro: bigint): number {
  return (
    [2, 3, 4, 5].find((digits) => {
      const step = 10n ** BigInt(6 - digits);
      return micro % step === 0n || micro >= 10n * step;
    }) ?? 6
  );
}
