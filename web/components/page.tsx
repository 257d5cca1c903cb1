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
        <div className="min-w-0 sm:flex-1 sm:basis-80">
          <Title className="text-2xl font-semibold tracking-tight">{title}</Title>
          {description !== undefined && <p className="mt-1 text-sm text-muted">{description}</p>}
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

/** In place of a page whose code is loaded. */
export function LoadingPage() {
  return <Loading what="the page" shape="page" />;
}

/** Shape of the content that a placeholder replaces, so that the layout changes little when the content arrives. */
type LoadingShape = "table" | "page" | "tiles" | "charts" | "columns" | "lines";

interface LoadingProps {
  /** Name of the loaded content, for screen readers: `the keys`. */
  readonly what: string;
  /** Default: the rows of a table. */
  readonly shape?: LoadingShape;
}

/** Placeholder in the shape of the loaded content. */
export function Loading({ what, shape = "table" }: LoadingProps) {
  return (
    <div role="status">
      <span className="sr-only">Loading {what}</span>
      <div aria-hidden className="animate-pulse motion-reduce:animate-none">
        {SHAPES[shape]}
      </div>
    </div>
  );
}

const BOX = "rounded-xl border border-line bg-surface";
const BAR = "h-3.5 rounded bg-line";

const ROWS = (
  <div className={`${BOX} divide-y divide-line`}>
    {["w-64", "w-52", "w-72", "w-44", "w-60", "w-56"].map((width) => (
      <div key={width} className="flex h-14 items-center justify-between gap-8 px-5">
        <div className={`${BAR} ${width} max-w-[50%]`} />
        <div className={`${BAR} w-24`} />
        <div className={`${BAR} w-32 max-sm:hidden`} />
      </div>
    ))}
  </div>
);

const TILES = (
  <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
    {["w-16", "w-14", "w-12", "w-20"].map((width) => (
      <div key={width} className={`${BOX} h-30 p-5`}>
        <div className={`${BAR} ${width}`} />
        <div className="mt-3 h-6 w-24 rounded bg-line" />
      </div>
    ))}
  </div>
);

const CHART = (
  <div className={`${BOX} h-80 p-6`}>
    <div className={`${BAR} w-32`} />
  </div>
);

const SHAPES: Readonly<Record<LoadingShape, ReactNode>> = {
  table: ROWS,
  tiles: (
    <div className="space-y-6">
      {TILES}
      {TILES}
    </div>
  ),
  charts: (
    <div className="space-y-6">
      {TILES}
      {CHART}
      {CHART}
    </div>
  ),
  columns: (
    <div className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_19rem]">
      {CHART}
      {CHART}
    </div>
  ),
  lines: (
    <div className="space-y-3">
      <div className={`${BAR} w-64`} />
      <div className={`${BAR} w-48`} />
    </div>
  ),
  page: (
    <>
      <div className="mb-8 h-7 w-40 rounded bg-line" />
      {ROWS}
    </>
  ),
};

/** Empty state: title, and what to do. */
export function Empty({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="rounded-xl border border-dashed border-line px-6 py-14 text-center">
      <p className="text-lg font-medium">{title}</p>
      <div className="mx-auto mt-2 max-w-md text-sm text-muted">{children}</div>
    </div>
  );
}
