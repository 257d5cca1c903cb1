import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { Button } from "../components/button.tsx";
import { type CsvCell, toCsv } from "../../src/encoding/csv.ts";
import { download } from "../format/download.ts";

/** Content of a table, for a chart or for groups. */
export interface TableContent {
  /** Accessible name of the table. */
  readonly label: string;
  /** The first column contains the names of the rows. */
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
  readonly total?: readonly string[];
  /** File name and rows of the CSV download. */
  readonly csv: { readonly name: string; readonly rows: () => readonly (readonly CsvCell[])[] };
}

interface TableColumn {
  /** Unique ID. Names may repeat. */
  readonly id: string;
  readonly name: string;
}

interface TableRow extends TableColumn {
  /** Link to the requests of the row; undefined for none. */
  readonly href?: string | undefined;
  readonly cells: readonly string[];
}

/** Collapsed table of a chart's values. */
export function DataTable(content: TableContent) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="group mt-3" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="-ml-3 inline-flex min-h-9 items-center rounded-lg px-3 text-sm font-medium text-accent hover:bg-accent-soft">
        <span className="group-open:hidden">Show table</span>
        <span className="hidden group-open:inline">Hide table</span>
      </summary>
      {isOpen && (
        <div className="mt-2">
          <Table {...content} />
        </div>
      )}
    </details>
  );
}

/** Table with a CSV download. */
export function Table({ label, columns, rows, total, csv }: TableContent) {
  return (
    <>
      {/* Focusable, because a scrollable region must be reachable by keyboard. */}
      <section tabIndex={0} aria-label={label} className="max-h-[36rem] overflow-auto rounded-lg border border-line">
        <table className="w-full text-sm tabular-nums">
          <thead className="text-muted">
            <tr>
              {columns.map(({ id, name }) => (
                <Head key={id} isFirst={id === columns[0]?.id}>
                  {name}
                </Head>
              ))}
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {rows.map(({ id, name, href, cells }) => (
              <tr key={id}>
                <th scope="row" className="max-w-72 min-w-28 px-4 py-2 text-left font-medium wrap-anywhere">
                  {href === undefined ? (
                    <bdi>{name}</bdi>
                  ) : (
                    <Link href={href} className="text-accent underline-offset-2 hover:underline">
                      <bdi>{name}</bdi>
                    </Link>
                  )}
                </th>
                <Cells cells={cells} columns={columns} />
              </tr>
            ))}
          </tbody>
          {total && (
            <tfoot className="border-t border-line font-semibold">
              <tr>
                <th scope="row" className="px-4 py-2 text-left font-semibold">
                  Total
                </th>
                <Cells cells={total} columns={columns} />
              </tr>
            </tfoot>
          )}
        </table>
      </section>
      <Button
        look="quiet"
        size="small"
        className="mt-2 -ml-3"
        aria-label={`Download CSV: ${label}`}
        onClick={() => download(csv.name, toCsv(csv.rows()), "text/csv")}
      >
        Download CSV
      </Button>
    </>
  );
}

function Head({ isFirst, children }: { readonly isFirst: boolean; readonly children: ReactNode }) {
  return (
    <th
      scope="col"
      className={`sticky top-0 max-w-48 truncate bg-surface px-4 py-2 font-medium whitespace-nowrap shadow-[inset_0_-1px_0] shadow-line ${isFirst ? "text-left" : "text-right"}`}
    >
      <bdi>{children}</bdi>
    </th>
  );
}

interface CellsProps {
  readonly cells: readonly string[];
  readonly columns: readonly TableColumn[];
}

function Cells({ cells, columns }: CellsProps) {
  return cells.map((cell, index) => (
    <td key={columns[index + 1]?.id} className="px-4 py-2 text-right whitespace-nowrap">
      {cell}
    </td>
  ));
}
