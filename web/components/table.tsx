import type { ReactNode } from "react";

interface TableProps {
  readonly label: string;
  /** Row of the column headers. Not on phones, where each row is a card. */
  readonly head: ReactNode;
  readonly children: ReactNode;
}

/** A table whose rows are grids, and cards on phones. */
export function Table({ label, head, children }: TableProps) {
  return (
    <div role="table" aria-label={label} className="overflow-hidden rounded-xl border border-line bg-surface text-sm">
      <div role="rowgroup" className="border-b border-line font-medium text-muted max-lg:hidden">
        {head}
      </div>
      <div role="rowgroup" className="divide-y divide-line">
        {children}
      </div>
    </div>
  );
}

interface ColumnHeadsProps {
  /** Classes of the grid's columns. */
  readonly grid: string;
  readonly columns: readonly string[];
  /** The column whose header is aligned to the right. Default: none. */
  readonly right?: string;
}

/** Row of column headers. */
export function ColumnHeads({ grid, columns, right }: ColumnHeadsProps) {
  return (
    <div role="row" className={`${grid} px-5 py-2`}>
      {columns.map((column) => (
        <span key={column} role="columnheader" className={column === right ? "text-right" : ""}>
          {column}
        </span>
      ))}
    </div>
  );
}

interface CellProps {
  /** Shown on phones, which have no column headers. Default: none. */
  readonly label?: string;
  /** Second line. */
  readonly detail?: ReactNode;
  readonly className?: string;
  readonly children?: ReactNode;
}

export function Cell({ label, detail, className = "", children }: CellProps) {
  return (
    <div role="cell" className={`min-w-0 tabular-nums ${className}`}>
      {label !== undefined && <span className="block text-xs text-muted lg:hidden">{label}</span>}
      {children}
      {detail !== undefined && <span className="block text-xs text-muted">{detail}</span>}
    </div>
  );
}

/** Placeholder of a missing value. */
export function None() {
  return (
    <>
      <span aria-hidden className="text-muted">
        –
      </span>
      <span className="sr-only">None</span>
    </>
  );
}

/** Classes of a small button or link that is an icon. On wide screens it fits into a row of one line. */
export const ICON_BUTTON =
  "flex size-8 shrink-0 lg:size-7 items-center justify-center rounded-md text-muted hover:bg-accent-soft hover:text-accent-strong";
