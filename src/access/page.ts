/** One page of a list that begins with the oldest. */
export interface Page {
  /** How many at most. */
  readonly limit: number;
  /** The last row of the page before; undefined for the first page. */
  readonly after?: { readonly createdAtMs: number; readonly id: string } | undefined;
}
