import { type ReactNode, useId } from "react";

/** Returns the anchor of a panel: `timeouts-retries-and-overload`. */
export function anchorOf(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
}

/** Classes of an element that an address leads to: below what stays at the top of a phone's screen. */
export const ANCHOR = "scroll-mt-28 lg:scroll-mt-4";

export interface PanelProps {
  readonly title: string;
  readonly description?: string;
  /** Buttons beside the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** Section of a page with a heading, to which an address can lead. */
export function Panel({ title, description, actions, children }: PanelProps) {
  const id = useId();
  return (
    <section
      id={anchorOf(title)}
      aria-labelledby={id}
      className={`rounded-xl border border-line bg-surface p-4 sm:p-5 ${ANCHOR}`}
    >
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2">
        <div className="min-w-0">
          <h2 id={id} className="text-base font-semibold">
            {title}
          </h2>
          {description !== undefined && <p className="mt-1 text-sm text-muted">{description}</p>}
        </div>
        {actions}
      </div>
      <div className="mt-4">{children}</div>
    </section>
  );
}
