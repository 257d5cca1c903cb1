import type { ReactNode } from "react";
import { Link } from "wouter";

/** A way to another page, in a text or beside others. `label` says where to, where the words alone do not. */
export function TextLink({
  to,
  label,
  children,
}: {
  readonly to: string;
  readonly label?: string;
  readonly children: ReactNode;
}) {
  return (
    <Link href={to} aria-label={label} className="font-medium text-accent underline underline-offset-2">
      {children}
    </Link>
  );
}
