import { type ReactNode, useState } from "react";

interface FoldProps {
  readonly title: string;
  /** Short summary of the content, shown while collapsed. */
  readonly summary: string;
  /** Forces the section open, for a validation error inside. */
  readonly isOpen: boolean;
  readonly children: ReactNode;
}

/** Collapsible section, for optional settings. */
export function Fold({ title, summary, isOpen, children }: FoldProps) {
  const [wasOpened, setOpened] = useState(false);
  return (
    <details
      open={isOpen || wasOpened}
      onToggle={(event) => setOpened(event.currentTarget.open)}
      className="group rounded-lg border border-line"
    >
      <summary className="flex min-h-11 items-center justify-between gap-4 rounded-lg px-4 text-sm font-medium">
        {title}
        <span className="text-sm font-normal text-muted group-open:hidden">{summary}</span>
      </summary>
      <div className="space-y-5 border-t border-line p-4">{children}</div>
    </details>
  );
}
