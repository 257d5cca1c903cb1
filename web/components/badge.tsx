import type { ReactNode } from "react";

const LOOKS = {
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  danger: "bg-danger-soft text-danger",
  plain: "bg-sunken text-muted",
} as const;

/** Short status label. */
export function Badge({ look, children }: { readonly look: keyof typeof LOOKS; readonly children: ReactNode }) {
  return (
    <span className={`rounded-full px-2.5 py-0.5 text-xs font-medium whitespace-nowrap ${LOOKS[look]}`}>
      {children}
    </span>
  );
}
