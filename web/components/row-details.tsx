import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

interface RowOpenerProps {
  readonly isOpen: boolean;
  /** ID of the row of details. */
  readonly details: string;
  /** The whole of a text that may be cut. */
  readonly title: string;
  readonly onToggle: () => void;
  readonly children: ReactNode;
}

/** Name of a table's row: a button that opens the row of its details. */
export function RowOpener({ isOpen, details, title, onToggle, children }: RowOpenerProps) {
  return (
    <button
      type="button"
      aria-expanded={isOpen}
      aria-controls={isOpen ? details : undefined}
      title={title}
      onClick={onToggle}
      className="-ml-1 flex min-h-6 max-w-full min-w-0 items-center gap-1 rounded-md text-left lg:min-h-7"
    >
      <ChevronRight
        aria-hidden
        className={`size-4 shrink-0 text-muted ${isOpen ? "rotate-90" : "transition-transform"}`}
      />
      <span className="truncate">{children}</span>
    </button>
  );
}

interface DetailRowProps {
  readonly id?: string;
  /** Number of the table's columns. */
  readonly columns: number;
  readonly children: ReactNode;
}

/** A row with one cell, below the one that it is about. */
export function DetailRow({ id, columns, children }: DetailRowProps) {
  return (
    <div role="row" id={id}>
      <div role="cell" aria-colspan={columns} className="bg-sunken px-4 py-3 lg:px-5 lg:pl-10">
        {children}
      </div>
    </div>
  );
}
