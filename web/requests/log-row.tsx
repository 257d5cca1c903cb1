import type { CSSProperties, ReactNode } from "react";
import { ArrowDown, ArrowUp } from "lucide-react";
import { Link } from "wouter";
import { noteRequest } from "../api/requests.ts";
import { COLUMN_IDS, type ColumnId, columnOf, type RowFacts } from "./columns.tsx";
import type { Order } from "./filter.ts";

/** Columns of a table, with their tracks for wide screens, where a request is one line. On phones each request is a card. */
export interface Tracks {
  readonly columns: readonly ColumnId[];
  readonly style: CSSProperties;
}

export function tracksOf(columns: readonly ColumnId[]): Tracks {
  const facts = columns.map(columnOf);
  // Gaps and the padding of a row, in rem.
  const rem = facts.reduce((sum, { minRem }) => sum + minRem + GAP_REM, 2 - GAP_REM);
  const style = { "--tracks": facts.map(({ track }) => track).join(" "), "--room": `${rem}rem` };
  return { columns, style: style as CSSProperties };
}

const GAP_REM = 0.75;
const GRID = "grid gap-x-4 px-4 lg:min-w-(--room) lg:gap-x-3 lg:grid-cols-(--tracks) lg:items-center lg:gap-y-0";

interface LogHeadProps {
  readonly tracks: Tracks;
  readonly order?: Order;
  readonly isAscending?: boolean;
  /** Default: the table is not sorted. */
  readonly onOrder?: (order: Order, isAscending: boolean) => void;
}

/** Column headers. Not on phones. A click on the one that is sorted by reverses the order. */
export function LogHead({ tracks: { columns }, order, isAscending = false, onOrder }: LogHeadProps) {
  const Arrow = isAscending ? ArrowUp : ArrowDown;
  return (
    <div role="rowgroup" className="max-lg:hidden">
      <div role="row" className={`${GRID} border-b border-line py-1.5 font-medium text-muted`}>
        {columns.map((id) => {
          const { name, title, isRight, order: sorts } = columnOf(id);
          const isSorted = sorts !== undefined && sorts === order;
          const isNext = isSorted && !isAscending;
          const shown = title === undefined ? name : <abbr title={title}>{name}</abbr>;
          return (
            <span
              key={id}
              role="columnheader"
              aria-sort={isSorted ? (isAscending ? "ascending" : "descending") : undefined}
              className={`flex ${isRight ? "justify-end" : ""}`}
            >
              {sorts === undefined || onOrder === undefined ? (
                shown
              ) : (
                <button
                  type="button"
                  title={`Sort by ${(title ?? name).toLowerCase()}, ${firstOf(sorts, isNext)} first`}
                  onClick={() => onOrder(sorts, isNext)}
                  className={`-mx-1 flex items-center gap-1 rounded px-1 hover:text-ink ${isSorted ? "text-ink" : ""}`}
                >
                  {shown}
                  {isSorted && <Arrow aria-hidden className="size-3.5" />}
                </button>
              )}
            </span>
          );
        })}
      </div>
    </div>
  );
}

function firstOf(order: Order, isAscending: boolean): string {
  if (order === "time") return isAscending ? "oldest" : "latest";
  return isAscending ? "lowest" : "highest";
}

interface LogRowProps extends RowFacts {
  readonly tracks: Tracks;
  /** Whether the details of this request, or of another one, are shown beside the log. */
  readonly isOpen: boolean;
  readonly isOtherOpen: boolean;
  readonly href: string;
}

/** One request in the log. The whole row is a link. */
export function LogRow({ tracks, isOpen, isOtherOpen, href, ...facts }: LogRowProps) {
  const { request } = facts;
  const mark = request.refused ? "shadow-[inset_3px_0_0_var(--color-warn)]" : "";
  const look = isOpen ? "bg-accent-soft" : "hover:bg-sunken has-focus-visible:bg-sunken";
  return (
    <div
      role="row"
      className={`relative grid-cols-[minmax(0,1fr)_auto_auto] gap-y-0.5 py-2 tabular-nums lg:h-7.5 lg:py-0 ${GRID} ${look} ${mark}`}
    >
      {COLUMN_IDS.map((id) => {
        const { isRight, phone, cell } = columnOf(id);
        const isShown = tracks.columns.includes(id);
        if (!isShown && phone === undefined) return null;
        const where = `${phone ?? "max-lg:hidden"} lg:order-none lg:col-span-1 ${isShown ? "" : "lg:hidden"}`;
        return (
          <Cell key={id} className={`${where} ${isRight ? "lg:text-right lg:whitespace-nowrap" : ""}`}>
            {id === "time" ? (
              <Link
                href={href}
                replace={isOpen || isOtherOpen}
                onClick={() => noteRequest(request)}
                data-request={request.id}
                aria-current={isOpen ? "true" : undefined}
                className="after:absolute after:inset-0"
              >
                {cell(facts)}
              </Link>
            ) : (
              cell(facts)
            )}
          </Cell>
        );
      })}
    </div>
  );
}

function Cell({ className, children }: { readonly className: string; readonly children: ReactNode }) {
  return (
    <div role="cell" className={`min-w-0 wrap-anywhere ${className}`}>
      {children}
    </div>
  );
}
