import { type ReactNode, useEffect, useRef } from "react";

interface PageProps {
  readonly title: string;
  readonly description?: string;
  /** Buttons beside the title. */
  readonly actions?: ReactNode;
  /** The page is a table, which takes the width of the window. Default: the width of a form. */
  readonly isWide?: boolean;
  readonly children: ReactNode;
}

/** Page layout. The title is also the document title. */
export function Page({ title, description, actions, isWide = false, children }: PageProps) {
  return (
    <div className={isWide ? "" : "max-w-5xl"}>
      <header className="mb-5 flex flex-wrap items-start justify-between gap-x-6 gap-y-4">
        <div className="min-w-0">
          <Title className="text-2xl font-semibold tracking-tight">{title}</Title>
          {description !== undefined && <p className="mt-1 text-[0.9375rem] text-muted">{description}</p>}
        </div>
        {actions}
      </header>
      {children}
    </div>
  );
}

/** Page heading. Gets the focus on a new page, so that screen readers announce it. */
export function Title({ children, className }: { readonly children: string; readonly className: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${children} · Parley`;
    // Does not move focus that is already inside the page.
    if (document.activeElement === document.body || document.activeElement?.closest("nav") != null) {
      heading.current?.focus({ preventScroll: true });
    }
  }, [children]);
  return (
    <h1 ref={heading} tabIndex={-1} className={className}>
      {children}
    </h1>
  );
}

/** Loading indicator of the app. Appears after 500 ms. */
export function Starting() {
  return (
    <main>
      <h1 className="sr-only">Parley</h1>
      <p role="status" className="animate-[appear_500ms_step-end_backwards] p-8 text-center text-muted">
        Loading…
      </p>
    </main>
  );
}

/** Loading placeholder. */
export function Loading({ what, rows = 3 }: { readonly what: string; readonly rows?: number }) {
  return (
    <div role="status" className="space-y-3">
      <span className="sr-only">Loading {what}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div
          key={row}
          className="h-28 animate-pulse rounded-xl border border-line bg-surface motion-reduce:animate-none"
        />
      ))}
    </div>
  );
}

/** Empty state: title, and what to do. */
export function Empty({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="rounded-xl border border-dashed border-line px-6 py-14 text-center">
      <p className="text-lg font-medium">{title}</p>
      <div className="mx-auto mt-2 max-w-md text-[0.9375rem] text-muted">{children}</div>
    </div>
  );
}
