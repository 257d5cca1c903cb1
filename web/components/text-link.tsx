import type { ReactNode } from "react";
import { Link } from "wouter";

/** Link to another page of the app. `label` is the accessible name if the text alone is ambiguous. */
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
