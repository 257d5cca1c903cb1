import { Badge } from "../components/badge.tsx";
import { adviceFor, type FailureAdvice } from "../format/failure-advice.ts";
import { Code, Prose } from "../components/prose.tsx";
import type { ErrorRow } from "./reference.ts";
import { Anchor } from "./section.tsx";

const RETRY: Readonly<Record<FailureAdvice["retry"], string>> = {
  no: "Do not retry as it is",
  "after a wait": "Retry after a wait",
  once: "Retry once",
};

/** Every failure: what it is on the wire, what it means, and what to do about it. */
export function Errors({ rows }: { readonly rows: readonly ErrorRow[] }) {
  return (
    <ul aria-label="Failure codes" className="space-y-3">
      {rows.map((row) => (
        <ErrorItem key={row.code} row={row} />
      ))}
    </ul>
  );
}

function ErrorItem({ row }: { readonly row: ErrorRow }) {
  const advice = adviceFor(row.code);
  return (
    <li
      id={row.anchor}
      className="scroll-mt-6 rounded-xl border border-line bg-surface p-4 target:border-accent target:bg-accent-soft print:break-inside-avoid"
    >
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1.5">
        <h3 className="font-mono text-sm font-semibold wrap-anywhere">
          <Anchor to={row.anchor}>{row.code}</Anchor>
        </h3>
        {advice && <Badge look={advice.retry === "no" ? "plain" : "warn"}>{RETRY[advice.retry]}</Badge>}
      </div>
      {advice && (
        <div className="mt-1.5 space-y-1 text-sm">
          <Prose text={advice.means} />
          <Prose text={`What to do: ${advice.todo}`} />
        </div>
      )}
      <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-[0.8125rem] sm:grid-cols-[9rem_1fr_6rem_1fr]">
        <Fact name="HTTP">{row.http === undefined ? "no answer" : String(row.http)}</Fact>
        <Fact name="gRPC">{row.grpc}</Fact>
        <Fact name="error.type">{row.http === undefined ? "–" : row.type}</Fact>
        <Fact name="error.code">{row.errorCodes.map((code) => code ?? "null").join(", ") || "absent"}</Fact>
        {row.tellsWait && <Fact name="Time to wait">retry-after, google.rpc.RetryInfo</Fact>}
        {row.isFinal && <Fact name="Official clients">x-should-retry: false</Fact>}
      </dl>
    </li>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: string }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 wrap-anywhere">
        <Code>{children}</Code>
      </dd>
    </>
  );
}
