import type { ReactNode } from "react";

interface SectionProps {
  readonly id: string;
  readonly title: string;
  readonly level?: 2 | 3;
  readonly children: ReactNode;
}

/** A part of the page that can be linked to. */
export function Section({ id, title, level = 2, children }: SectionProps) {
  const Heading = `h${level}` as const;
  const look =
    level === 2
      ? "text-xl font-semibold tracking-tight border-t border-line pt-8 print:border-0"
      : "text-base font-semibold";
  return (
    <section aria-labelledby={id} className={level === 2 ? "mt-10 space-y-5 first:mt-6" : "mt-8 space-y-4"}>
      <Heading id={id} className={`scroll-mt-6 ${look}`}>
        <Anchor to={id}>{title}</Anchor>
      </Heading>
      {children}
    </section>
  );
}

/** A name that is a link to itself. */
export function Anchor({ to, children }: { readonly to: string; readonly children: ReactNode }) {
  return (
    <a href={`#${to}`} className="group decoration-line underline-offset-4 hover:underline">
      {children}
      <span
        aria-hidden="true"
        className="-mr-4 ml-1 inline-block w-3 text-accent opacity-0 group-hover:opacity-100 print:hidden"
      >
        #
      </span>
    </a>
  );
}
