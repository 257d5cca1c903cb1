import type { ReactNode } from "react";
import { Mark } from "../components/mark.tsx";
import { Title } from "../components/page.tsx";
import { PATHS } from "../paths.ts";

interface EntranceProps {
  readonly title: string;
  readonly description?: ReactNode;
  readonly children: ReactNode;
  /** Links to other pages. */
  readonly footer?: ReactNode;
}

/** Layout of the pages without a session. */
export function Entrance({ title, description, children, footer }: EntranceProps) {
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-md flex-col justify-center px-5 py-10">
      <Mark />
      <div className="mt-6 rounded-2xl border border-line bg-surface p-6 shadow-xs sm:p-8">
        <Title className="text-xl font-semibold tracking-tight">{title}</Title>
        {description !== undefined && <p className="mt-2 text-[0.9375rem] text-muted">{description}</p>}
        <div className="mt-6">{children}</div>
      </div>
      {footer && <p className="mt-5 text-center text-sm text-muted">{footer}</p>}
      <p className="mt-3 text-center text-sm text-muted">
        <a href={PATHS.docs} className="underline underline-offset-2 hover:text-ink">
          API reference
        </a>
      </p>
    </main>
  );
}
