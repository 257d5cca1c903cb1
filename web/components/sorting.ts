import { useSearchParams } from "wouter";

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

/** A column, and the direction of the first click on it. */
interface ClickedColumn<Column extends string> {
  readonly column: Column;
  readonly isHighestFirst: boolean;
}

/** The order after a click on a column: one direction, the other one, that of the list. */
export function nextSorting<Column extends string>(
  sorting: Sorting<Column> | undefined,
  { column, isHighestFirst }: ClickedColumn<Column>,
): Sorting<Column> | undefined {
  if (sorting?.column !== column) return { column, isDescending: isHighestFirst };
  return sorting.isDescending === isHighestFirst ? { column, isDescending: !isHighestFirst } : undefined;
}

const DESCENDING = "desc";

/** Returns the order in the URL, `?order=name&direction=desc`, and the function that changes it. Unknown columns count as none. */
export function useSorting<Column extends string>(
  columns: readonly { readonly column?: Column }[],
): readonly [sorting: Sorting<Column> | undefined, sort: (sorting: Sorting<Column> | undefined) => void] {
  const [search, setSearch] = useSearchParams();
  const order = search.get("order");
  const column = columns.find((each) => each.column !== undefined && each.column === order)?.column;
  const sorting = column && { column, isDescending: search.get("direction") === DESCENDING };
  const sort = (next: Sorting<Column> | undefined): void =>
    setSearch(
      (before) => {
        before.delete("order");
        before.delete("direction");
        if (next !== undefined) before.set("order", next.column);
        if (next?.isDescending === true) before.set("direction", DESCENDING);
        return before;
      },
      { replace: true },
    );
  return [sorting, sort];
}
