import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams } from "wouter";
import { BudgetHolder, type ListBudgetsResponse } from "../../gen/parley/console/v1/attribution_pb.js";
import { BudgetPeriod, type Key } from "../../gen/parley/console/v1/key_pb.js";
import { StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { budgetsQuery } from "../api/attribution.ts";
import { keyQuery } from "../api/keys.ts";
import { useOwners } from "../api/owners.ts";
import { stopsQuery } from "../api/stops.ts";
import { Unavailable } from "../components/alert.tsx";
import { buttonClass } from "../components/button.tsx";
import { SearchField } from "../components/field.tsx";
import { MorePages } from "../components/more.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { Segments } from "../components/segments.tsx";
import { TextLink } from "../components/text-link.tsx";
import { useSettled } from "../components/use-settled.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import { formatMoment } from "../format/time.ts";
import { keyPath, PATHS } from "../paths.ts";
import { EndUserHead, EndUserRow } from "./end-user-row.tsx";
import { NoKey } from "./no-key.tsx";

/** Holders of budgets, by their name on the page. */
const HOLDERS = {
  "end users": { holder: BudgetHolder.END_USER, kind: StopKind.END_USER },
  sessions: { holder: BudgetHolder.SESSION, kind: StopKind.SESSION },
} as const;

type Holders = keyof typeof HOLDERS;

const CHOICES = [
  ["end users", "End users"],
  ["sessions", "Sessions"],
] as const;

/** Page of the budgets of a key's end users and sessions, and of their spending. */
export default function EndUsers() {
  const { id = "" } = useParams();
  const found = useQuery(keyQuery(id));
  if (found.isPending) return <Loading what="the key" shape="page" />;
  if (found.isLoadingError) return <NoKey title="End users" error={found.error} onRetry={found.refetch} />;
  const key = found.data;
  return (
    <Page
      isWide
      title={`End users of ${key.name}`}
      description={describe(key)}
      actions={
        <Link href={keyPath(id)} className={buttonClass("secondary", "small")}>
          Key
        </Link>
      }
    >
      <Budgets value={key} />
    </Page>
  );
}

function describe({ attributionLimits: limits }: Key): string {
  const period = limits?.endUserBudgetPeriod === BudgetPeriod.MONTH ? "month" : "day";
  const budgets = [
    limits?.endUserBudgetMicroUsd === undefined
      ? []
      : `${formatMicroUsd(limits.endUserBudgetMicroUsd)} a ${period} for each end user`,
    limits?.sessionBudgetMicroUsd === undefined
      ? []
      : `${formatMicroUsd(limits.sessionBudgetMicroUsd)} for each session`,
  ].flat();
  return budgets.length === 0
    ? "This key has no budget for each end user or session."
    : `Budgets: ${budgets.join(", ")}.`;
}

function Budgets({ value: key }: { readonly value: Key }) {
  const limits = key.attributionLimits;
  const [holders, setHolders] = useState<Holders>(
    limits?.endUserBudgetMicroUsd === undefined && limits?.sessionBudgetMicroUsd !== undefined
      ? "sessions"
      : "end users",
  );
  const [text, setText] = useState("");
  const search = useSettled(text.trim());
  const { holder, kind } = HOLDERS[holders];
  const list = useInfiniteQuery(budgetsQuery({ keyId: key.id, holder, search }));
  const { data: stops = [] } = useQuery(stopsQuery);
  const owner = useOwners().find(({ id }) => id === key.accountId);
  const first = list.data?.pages[0];
  const rows = list.data?.pages.flatMap(({ budgets }) => budgets) ?? [];
  const stopOf = (name: string) =>
    stops.find((stop) => stop.kind === kind && stop.accountId === key.accountId && stop.value === name);
  return (
    <>
      <div className="mb-4 flex flex-wrap items-end gap-4">
        <div className="w-56">
          <Segments legend="Budgets of" choices={CHOICES} value={holders} onChange={setHolders} />
        </div>
        <div className="w-full sm:w-80">
          <SearchField label={`Find ${holders}`} maxLength={200} value={text} onChange={setText} />
        </div>
        {first !== undefined && (
          <p role="status" className="text-sm text-muted sm:pb-2.5">
            {summarize(first, holders)}
          </p>
        )}
      </div>
      {list.isPending ? (
        <Loading what={`the ${holders}`} />
      ) : list.isLoadingError ? (
        <Unavailable error={list.error} onRetry={() => void list.refetch()} />
      ) : rows.length === 0 ? (
        <Nothing holders={holders} first={first} search={search} />
      ) : (
        <div
          role="table"
          aria-label={holders === "sessions" ? "Sessions" : "End users"}
          className="overflow-hidden rounded-xl border border-line bg-surface text-sm"
        >
          <EndUserHead holders={holders} />
          <div role="rowgroup" className="divide-y divide-line">
            {rows.map((budget) => (
              <EndUserRow
                key={budget.name}
                value={budget}
                of={key}
                holder={holder}
                kind={kind}
                stop={stopOf(budget.name)}
                isWritable={owner?.isWritable === true}
              />
            ))}
          </div>
        </div>
      )}
      <MorePages {...list} />
    </>
  );
}

function summarize({ count, period, resetTime }: ListBudgetsResponse, holders: Holders): string {
  if (period === "") return "";
  const ends = resetTime === undefined ? "" : `, until ${formatMoment(resetTime)}`;
  return `${formatCount(count)} ${count === 1n ? holders.slice(0, -1) : holders}, highest spending first${ends}`;
}

interface NothingProps {
  readonly holders: Holders;
  readonly first: ListBudgetsResponse | undefined;
  readonly search: string;
}

function Nothing({ holders, first, search }: NothingProps) {
  if (search !== "") return <Empty title="No matches">{`None of the ${holders} has this text in its name.`}</Empty>;
  if (first?.period === "")
    return (
      <Empty title={`No budget for ${holders}`}>
        <p>
          Set one in the form of the key, under “End users and sessions”. What they spend without a budget is on{" "}
          <TextLink to={PATHS.usage}>Usage</TextLink>, grouped by {holders.slice(0, -1)}.
        </p>
      </Empty>
    );
  return <Empty title="Nothing spent">{`No request of the present period has named one of the ${holders}.`}</Empty>;
}
