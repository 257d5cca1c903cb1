import type { ReactNode } from "react";
import { Link } from "wouter";

interface TileProps {
  readonly name: string;
  readonly value: string;
  /** Second line. */
  readonly note?: ReactNode;
  /** Page with the details. */
  readonly href: string;
  readonly children?: ReactNode;
}

/** A key figure with an optional chart below it, which links to its details. */
export function Tile({ name, value, note, href, children }: TileProps) {
  return (
    <div className="relative flex flex-col rounded-xl border border-line bg-surface p-4 hover:border-edge sm:p-5">
      <dt className="text-sm text-muted">
        <Link href={href} className="after:absolute after:inset-0 after:rounded-xl hover:text-ink">
          {name}
        </Link>
      </dt>
      <dd className="mt-1 text-2xl font-semibold tracking-tight tabular-nums">{value}</dd>
      <dd className="mt-1 text-sm text-muted tabular-nums">{note}</dd>
      {children ? <dd className="mt-auto pt-4">{children}</dd> : null}
    </div>
  );
}
