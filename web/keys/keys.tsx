import { lazy, Suspense, useEffect, useState } from "react";
import { type InfiniteData, useInfiniteQuery, type UseInfiniteQueryResult } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { type Key, KeyOrder, type ListKeysResponse } from "../../gen/parley/console/v1/key_pb.js";
import { keyListQuery } from "../api/keys.ts";
import { useOwners } from "../api/owners.ts";
import { useAccount, useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { MorePages } from "../components/more.tsx";
import { onDemand } from "../components/on-demand.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { useSorting } from "../components/sorting.ts";
import { Table } from "../components/table.tsx";
import { TextLink } from "../components/text-link.tsx";
import { useFind } from "../components/use-find.ts";
import { useSettled } from "../components/use-settled.ts";
import { formatMoment } from "../format/time.ts";
import { PATHS } from "../paths.ts";
import { useKeyActions } from "./key-actions.tsx";
import { KEY_COLUMNS, type KeyColumn, KeyHead, KeyRow } from "./key-row.tsx";

// Loaded when first needed, so that the list appears sooner.
const CreateKey = lazy(() => import("./create-key.tsx"));
const KeyFilters = onDemand(
  () => import("./key-filters.tsx"),
  () => <div className="mb-4 h-11 sm:h-9" />,
);

/** Number of keys above which the search field is shown; also with keys of several owners. */
const MANY = 10;

/** Orders of the server by column; without one the newest key is first. */
const ORDERS: Readonly<Record<KeyColumn, KeyOrder>> = {
  name: KeyOrder.NAME,
  budget: KeyOrder.BUDGET,
  created: KeyOrder.UNSPECIFIED,
  expires: KeyOrder.EXPIRY,
  used: KeyOrder.LAST_USE,
  spent: KeyOrder.SPENT,
};

/** Page of all keys, with permissions, usage and actions. */
export default function Keys() {
  const [creation, setCreation] = useState<"open" | "closed">();
  const create = (): void => setCreation("open");
  const [search, setSearch] = useSearchParams();
  const isAsked = search.has("create");
  if (isAsked && creation !== "open") setCreation("open");
  // The address opens the dialog once, not again after a reload.
  useEffect(() => {
    if (!isAsked) return;
    setSearch(
      (before) => {
        before.delete("create");
        return before;
      },
      { replace: true },
    );
  }, [isAsked, setSearch]);
  const isAll = useMay("keys.read");
  const owners = useOwners();
  return (
    <Page
      isWide
      title="Keys"
      description={describe(isAll, owners.length > 1)}
      actions={owners.some(({ isWritable }) => isWritable) && <Button onClick={create}>Create key</Button>}
    >
      <KeyList onCreate={create} />
      {creation && (
        <Suspense>
          <CreateKey open={creation === "open"} onClose={() => setCreation("closed")} />
        </Suspense>
      )}
    </Page>
  );
}

function KeyList({ onCreate }: { readonly onCreate: () => void }) {
  const account = useAccount();
  const owners = useOwners();
  const [accountId, setAccountId] = useState("");
  const [withEnded, setWithEnded] = useState(false);
  const [searchText, setSearchText] = useFind();
  const find = useSettled(searchText.trim());
  const modelId = useSearchParams()[0].get("model") ?? "";
  const [sorting, setSorting] = useSorting(KEY_COLUMNS);
  const { actionsOn, dialog } = useKeyActions();
  const order = sorting === undefined ? KeyOrder.UNSPECIFIED : ORDERS[sorting.column];
  const view = { order, descending: sorting?.isDescending ?? true, accountId, find, modelId };
  const active = useInfiniteQuery(keyListQuery({ ...view, active: true }));
  const ended = useInfiniteQuery(keyListQuery({ ...view, active: false }));
  if (active.isPending) return <Loading what="the keys" />;
  if (active.isLoadingError) return <Unavailable error={active.error} onRetry={() => void active.refetch()} />;

  const names = new Map(owners.map(({ id, name }) => [id, name]));
  const toTable = (label: string, { data, ...list }: UseInfiniteQueryResult<InfiniteData<ListKeysResponse>>) => (
    <>
      <Table label={label} head={<KeyHead sorting={sorting} onSort={setSorting} />}>
        {keysOf(data).map((key) => (
          <KeyRow
            key={key.id}
            value={key}
            owner={key.accountId === account.id ? undefined : (names.get(key.accountId) ?? key.accountId)}
            actions={actionsOn(key)}
          />
        ))}
      </Table>
      <MorePages {...list} />
    </>
  );
  const [activeKeys, endedKeys] = [keysOf(active.data), keysOf(ended.data)];
  const isNarrowed = find !== "" || modelId !== "";
  const isLong = activeKeys.length > MANY || owners.length > 1 || searchText !== "";
  const omittedUntil = active.data.pages[0]?.omittedUntil;
  return (
    <>
      {isLong && (
        <KeyFilters
          searchText={searchText}
          onSearch={setSearchText}
          accountId={accountId}
          onAccount={setAccountId}
          sorting={sorting}
          onSort={setSorting}
        />
      )}
      {modelId !== "" && (
        <p className="mb-4 text-sm text-muted">
          Keys that may use <bdi className="font-medium wrap-anywhere text-ink">{modelId}</bdi>.{" "}
          <TextLink to={PATHS.keys}>Show all keys</TextLink>
        </p>
      )}
      {omittedUntil !== undefined && (
        <p className="mb-4 text-sm text-muted">
          The latest 20,000 keys are sorted and searched, not those created until {formatMoment(omittedUntil)}. Choose
          an owner to see older ones.
        </p>
      )}
      {activeKeys.length > 0 ? (
        <div aria-busy={active.isPlaceholderData}>{toTable("Active keys", active)}</div>
      ) : isNarrowed ? (
        <p role="status" className="py-8 text-muted">
          No active key matches.
        </p>
      ) : (
        <Empty title="No active keys">
          <p>Apps authenticate with an API key. Its secret is shown once, when you create it.</p>
          {owners.some(({ isWritable }) => isWritable) && (
            <Button className="mt-5" onClick={onCreate}>
              Create your first key
            </Button>
          )}
        </Empty>
      )}
      {endedKeys.length > 0 && (
        <section className="mt-8">
          <Button look="quiet" size="small" aria-expanded={withEnded} onClick={() => setWithEnded(!withEnded)}>
            {withEnded ? "Hide" : "Show"} {endedKeys.length}
            {ended.hasNextPage && "+"} inactive {endedKeys.length === 1 ? "key" : "keys"}
          </Button>
          {withEnded && <div className="mt-3">{toTable("Inactive keys", ended)}</div>}
        </section>
      )}
      {dialog}
    </>
  );
}

function keysOf(data: InfiniteData<ListKeysResponse> | undefined): readonly Key[] {
  return data?.pages.flatMap(({ keys }) => keys) ?? [];
}

function describe(isAll: boolean, hasTeams: boolean): string {
  if (isAll) return "API keys of all accounts.";
  return hasTeams ? "API keys of your account and teams." : "Your API keys.";
}
