import { useState } from "react";
import { COLUMN_IDS, type ColumnId, columnOf, FIXED } from "./columns.tsx";

const STORED_AS = "parley-request-columns";

/** Returns the columns that this browser shows, in their order, and a function to change them. */
export function useColumns(): readonly [readonly ColumnId[], (columns: readonly ColumnId[]) => void] {
  const [columns, setColumns] = useState(readColumns);
  const change = (chosen: readonly ColumnId[]): void => {
    const ordered = inOrder(chosen);
    setColumns(ordered);
    try {
      localStorage.setItem(STORED_AS, ordered.join(","));
    } catch {
      // Storage is not available: the columns apply until the page is closed.
    }
  };
  return [columns, change];
}

/** The columns that are shown before the reader chooses some. */
export const USUAL_COLUMNS: readonly ColumnId[] = COLUMN_IDS.filter((id) => columnOf(id).isUsual);

function readColumns(): readonly ColumnId[] {
  try {
    const stored = localStorage.getItem(STORED_AS);
    return stored === null ? USUAL_COLUMNS : inOrder(stored.split(",") as ColumnId[]);
  } catch {
    return USUAL_COLUMNS;
  }
}

function inOrder(chosen: readonly ColumnId[]): readonly ColumnId[] {
  return COLUMN_IDS.filter((id) => FIXED.includes(id) || chosen.includes(id));
}
