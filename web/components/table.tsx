import type { ReactNode } from "react";
import { useIsWide } from "./media.ts";

interface TableProps {
  readonly label: string;
  /** Row of the column headers. Not on phones. */
  readonly head: ReactNode;
  readonly children: ReactNode;
}

/** A table whose rows are grids: one line on wide screens, two on phones. */
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

interface CellProps {
  /** Shown on hover: the whole of a text that may be cut. */
  readonly title?: string;
  readonly className?: string;
  readonly children?: ReactNode;
}

export function Cell({ title, className = "", children }: CellProps) {
  return (
    <div role="cell" title={title} className={`min-w-0 tabular-nums ${className}`}>
      {children}
    </div>
  );
}

/** Further words of a cell on phones, which have no column headers and fewer columns. */
export function OnPhones({ children }: { readonly children: ReactNode }) {
  return useIsWide() ? null : children;
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
