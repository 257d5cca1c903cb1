/** The calendar month of a moment, in UTC: `2026-11`. Budgets are for one of these. */
export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7);
}
