import { ArrowDown, ArrowUp } from "lucide-react";
import { ActionsHead } from "./row-actions.tsx";
import { nextSorting, type Sorting } from "./sorting.ts";

/** A column of a table that can be sorted. */
export interface SortedColumn<Column extends string> {
  readonly name: string;
  /** Written out, for an abbreviated name. */
  readonly title?: string;
  /** Sort column of a click on its name. Default: not sortable. */
  readonly column?: Column;
  /** The first click sorts from the highest value to the lowest. Default: from the lowest. */
  readonly isHighestFirst?: true;
  readonly isRight?: true;
  /** Padding on the left, because the right-aligned numbers of the column before end close to it. */
  readonly isApart?: true;
  /** Further classes of its header. */
  readonly className?: string;
}

/** Classes of a cell that follows numbers. */
export const APART = "lg:pl-4";

/** The columns of a table, and its order. */
export interface SortProps<Column extends string> {
  readonly columns: readonly SortedColumn<Column>[];
  readonly sorting: Sorting<Column> | undefined;
  readonly onSort: (sorting: Sorting<Column> | undefined) => void;
}

interface SortedHeadProps<Column extends string> extends SortProps<Column> {
  /** Classes of the grid, as those of the rows. */
  readonly grid: string;
}

/** Column headers, by which the table is sorted. */
export function SortedHead<Column extends string>({ columns, grid, sorting, onSort }: SortedHeadProps<Column>) {
  const Arrow = sorting?.isDescending === true ? ArrowDown : ArrowUp;
  return (
    <div role="row" className={grid}>
      {columns.map(({ name, title, column, isHighestFirst = false, isRight, isApart, className = "" }) => {
        const isSorted = column !== undefined && sorting?.column === column;
        const shown =
          name === "Actions" ? <ActionsHead /> : title === undefined ? name : <abbr title={title}>{name}</abbr>;
        return (
          <div
            key={name}
            role="columnheader"
            aria-sort={isSorted ? (sorting.isDescending ? "descending" : "ascending") : undefined}
            className={`flex min-h-8 items-center ${isRight ? "justify-end" : ""} ${isApart ? APART : ""} ${className}`}
          >
            {column === undefined ? (
              shown
            ) : (
              <button
                type="button"
                className="-mx-2 flex min-h-8 items-center gap-1 rounded-md px-2 hover:bg-sunken hover:text-ink"
                onClick={() => onSort(nextSorting(sorting, { column, isHighestFirst }))}
              >
                {shown}
                {isSorted && <Arrow aria-hidden className="size-3.5" />}
              </button>
            )}
          </div>
        );
      })}
    </div>
  );
}
