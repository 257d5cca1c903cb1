import { createElement, Fragment, type ReactNode } from "react";

/** Text with code between backticks. */
export function Words({ text }: { readonly text: string }) {
  return inOrder(text.split("`"), (piece, index) => (index % 2 === 1 ? <Code>{piece}</Code> : piece));
}

function Code({ children }: { readonly children: string }) {
  return <code className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.85em] wrap-anywhere">{children}</code>;
}

/** Renders static parts as arguments, so that they need no keys. */
export function inOrder<T>(parts: readonly T[], render: (part: T, index: number) => ReactNode): ReactNode {
  return createElement(Fragment, undefined, ...parts.map(render));
}
