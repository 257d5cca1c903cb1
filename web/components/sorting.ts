/** The column by which a table is sorted. */
export interface Sorting<Column extends string> {
  readonly column: Column;
  readonly isDescending: boolean;
}

/** The value of a row in each column; undefined comes last in both directions. */
export type SortValues<Row, Column extends string> = Readonly<
  Record<Column, (row: Row) => string | number | bigint | undefined>
>;

/** The rows in an order; without one in that of the list. */
export function sortRows<Row, Column extends string>(
  rows: readonly Row[],
  values: SortValues<Row, Column>,
  sorting: Sorting<Column> | undefined,
): readonly Row[] {
  if (sorting === undefined) return rows;
  const valueOf = values[sorting.column];
  const sign = sorting.isDescending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return a === b ? 0 : a < b ? -sign : sign;
  });
}

/** The order after a click on a column: ascending, descending, that of the list. */
export function nextSorting<Column extends string>(
  sorting: Sorting<Column> | undefined,
  column: Column,
): Sorting<Column> | undefined {
  if (sorting?.column !== column) return { column, isDescending: false };
  return sorting.isDescending ? undefined : { column, isDescending: true };
}
