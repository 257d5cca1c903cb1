import { createElement, Fragment, type ReactNode } from "react";

/** A text with its paragraphs, and what stands between backticks as code. */
export function Prose({ text, className = "" }: { readonly text: string; readonly className?: string }) {
  return inOrder(text.split("\n\n"), (paragraph) => (
    <p className={`max-w-prose wrap-anywhere ${className}`}>
      <Words text={paragraph} />
    </p>
  ));
}

/** The same inside a line. */
export function Words({ text }: { readonly text: string }) {
  return inOrder(text.split("`"), (piece, index) => (index % 2 === 1 ? <Code>{piece}</Code> : piece));
}

export function Code({ children }: { readonly children: string }) {
  return <code className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.85em] wrap-anywhere">{children}</code>;
}

/** What never changes its place, and so needs no keys. */
export function inOrder<T>(parts: readonly T[], render: (part: T, index: number) => ReactNode): ReactNode {
  return createElement(Fragment, undefined, ...parts.map(render));
}
