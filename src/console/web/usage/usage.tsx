import { type ReactNode, useState } from "react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { UsageGrouping, type UsageRow } from "../../../../gen/parley/console/v1/usage_pb.js";
import { usageQuery } from "../api/usage.ts";
import { isAdministrator, useAccount } from "../api/session.ts";
import { Unavailable } from "../parts/alert.tsx";
import { SelectField } from "../parts/field.tsx";
import { Empty, Loading, Page } from "../parts/page.tsx";
import { formatMicroUsd } from "../text/money.ts";
import { formatCount } from "../text/number.ts";

const GROUPINGS = [
  [UsageGrouping.DAY, "Day"],
  [UsageGrouping.MODEL, "Model"],
  [UsageGrouping.KEY, "Key"],
  [UsageGrouping.ACCOUNT, "Account"],
] as const;

const RANGES = [1, 7, 30, 90, 365] as const;

/** What was used over a time, in sums. */
export default function Usage() {
  const [by, setBy] = useState<UsageGrouping>(UsageGrouping.DAY);
  const [days, setDays] = useState<number>(30);
  const isAll = isAdministrator(useAccount());
  const sums = useQuery({ ...usageQuery(by, days), placeholderData: keepPreviousData });
  const groupings = isAll ? GROUPINGS : GROUPINGS.filter(([grouping]) => grouping !== UsageGrouping.ACCOUNT);
  const name = groupings.find(([grouping]) => grouping === by)?.[1] ?? "";
  return (
    <Page title="Usage" description={isAll ? "What all accounts have used." : "What your account has used."}>
      <div className="mb-5 grid max-w-md grid-cols-2 gap-4">
        <SelectField label="By" value={by} onChange={(event) => setBy(Number(event.target.value))}>
          {groupings.map(([grouping, label]) => (
            <option key={grouping} value={grouping}>
              {label}
            </option>
          ))}
        </SelectField>
        <SelectField label="Time" value={days} onChange={(event) => setDays(Number(event.target.value))}>
          {RANGES.map((range) => (
            <option key={range} value={range}>
              {range === 1 ? "Last 24 hours" : `Last ${range} days`}
            </option>
          ))}
        </SelectField>
      </div>
      {sums.isPending ? (
        <Loading what="the usage" rows={1} />
      ) : sums.isError ? (
        <Unavailable error={sums.error} onRetry={() => void sums.refetch()} />
      ) : sums.data.length === 0 ? (
        <Empty title="Nothing was used">No request has arrived in this time.</Empty>
      ) : (
        <Sums rows={sums.data} name={name} />
      )}
    </Page>
  );
}

function Sums({ rows, name }: { readonly rows: readonly UsageRow[]; readonly name: string }) {
  const total = (of: (row: UsageRow) => bigint): bigint => rows.reduce((sum, row) => sum + of(row), 0n);
  return (
    <section
      tabIndex={0}
      aria-label={`Usage by ${name.toLowerCase()}`}
      className="overflow-x-auto rounded-xl border border-line bg-surface"
    >
      <table className="w-full text-sm tabular-nums">
        <thead className="border-b border-line text-muted">
          <tr>
            <Head align="left">{name}</Head>
            <Head>Requests</Head>
            <Head>Failed</Head>
            <Head>Prompt tokens</Head>
            <Head>Answer tokens</Head>
            <Head>Cost</Head>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows.map((row) => (
            <tr key={row.group}>
              <th scope="row" className="max-w-72 min-w-32 px-5 py-3 text-left font-medium wrap-anywhere">
                <bdi>{row.name || row.group || "–"}</bdi>
              </th>
              <Cell>{formatCount(row.completions)}</Cell>
              <Cell>{formatCount(row.failed)}</Cell>
              <Cell>{formatCount(row.promptTokens)}</Cell>
              <Cell>{formatCount(row.completionTokens)}</Cell>
              <Cell>{formatMicroUsd(row.costMicroUsd)}</Cell>
            </tr>
          ))}
        </tbody>
        <tfoot className="border-t border-line font-semibold">
          <tr>
            <th scope="row" className="px-5 py-3 text-left font-semibold">
              Total
            </th>
            <Cell>{formatCount(total((row) => row.completions))}</Cell>
            <Cell>{formatCount(total((row) => row.failed))}</Cell>
            <Cell>{formatCount(total((row) => row.promptTokens))}</Cell>
            <Cell>{formatCount(total((row) => row.completionTokens))}</Cell>
            <Cell>{formatMicroUsd(total((row) => row.costMicroUsd))}</Cell>
          </tr>
        </tfoot>
      </table>
    </section>
  );
}

function Head({ align = "right", children }: { readonly align?: "left" | "right"; readonly children: ReactNode }) {
  return (
    <th
      scope="col"
      className={`px-5 py-3 font-medium whitespace-nowrap ${align === "left" ? "text-left" : "text-right"}`}
    >
      {children}
    </th>
  );
}

function Cell({ children }: { readonly children: ReactNode }) {
  return <td className="px-5 py-3 text-right whitespace-nowrap">{children}</td>;
}
