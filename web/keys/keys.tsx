import { lazy, Suspense, useEffect, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { keysQuery } from "../api/keys.ts";
import { ownerChoices, useOwners } from "../api/owners.ts";
import { useAccount, useMay } from "../api/session.ts";
import { SearchField } from "../components/field.tsx";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { Table } from "../components/table.tsx";
import { useFind } from "../components/use-find.ts";
import { hasWords } from "../format/search.ts";
import type { KeyAct } from "./dialog-props.ts";
import { KeyHead, KeyRow } from "./key-row.tsx";

// Dialogs are loaded when first opened, so that the list appears sooner.
const CreateKey = lazy(() => import("./create-key.tsx"));
const DIALOGS = {
  edit: lazy(() => import("./edit-key.tsx")),
  transfer: lazy(() => import("./transfer-key.tsx")),
  rotate: lazy(() => import("./rotate-key.tsx")),
  revoke: lazy(() => import("./revoke-key.tsx")),
} as const satisfies Record<KeyAct, unknown>;

/** Number of keys above which the search field is shown. */
const MANY = 10;
/** Number of keys shown initially, and added per click on "Show more". Rendering thousands would be slow. */
const SHOWN = 100;

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
  const list = useQuery(keysQuery);
  const account = useAccount();
  const owners = useOwners();
  const [ownerId, setOwnerId] = useState("");
  const [withEnded, setWithEnded] = useState(false);
  const [searchText, setSearchText] = useFind();
  const [act, setAct] = useState<{ readonly what: KeyAct; readonly target: Key; readonly isOpen: boolean }>();
  const names = new Map(owners.map(({ id, name }) => [id, name]));
  const writable = new Set(owners.filter(({ isWritable }) => isWritable).map(({ id }) => id));
  const found = (list.data ?? []).filter(
    (key) => (ownerId === "" || key.accountId === ownerId) && isFound(key, searchText, names.get(key.accountId)),
  );
  const active = found.filter(({ state }) => state === KeyState.ACTIVE);
  const ended = found.filter(({ state }) => state !== KeyState.ACTIVE);
  const shown = useShown(active, SHOWN);
  const shownEnded = useShown(ended, SHOWN);
  if (list.isPending) return <Loading what="the keys" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;

  const successors = new Set(list.data.map(({ replacedBy }) => replacedBy));
  const toRow = (key: Key) => (
    <KeyRow
      key={key.id}
      value={key}
      owner={key.accountId === account.id ? undefined : (names.get(key.accountId) ?? key.accountId)}
      isSuccessor={successors.has(key.id)}
      isWritable={writable.has(key.accountId)}
      isTransferable={writable.size > 1}
      onAct={(what) => setAct({ what, target: key, isOpen: true })}
    />
  );
  const ActDialog = act && DIALOGS[act.what];
  return (
    <>
      <div className="mb-4 grid gap-3 empty:hidden sm:grid-cols-[20rem_14rem]">
        {(list.data.length > MANY || searchText !== "") && (
          <SearchField label="Find a key" value={searchText} onChange={setSearchText} />
        )}
        {owners.length > 1 && (
          <Choose
            label="Owner"
            isLabelHidden
            value={ownerId}
            all="All owners"
            choices={ownerChoices(owners, account.id)}
            onChange={setOwnerId}
          />
        )}
      </div>
      {active.length === 0 && searchText.trim() !== "" ? (
        <p role="status" className="py-8 text-muted">
          No active key matches.
        </p>
      ) : active.length === 0 ? (
        <Empty title="No active keys">
          <p>Apps authenticate with an API key. Its secret is shown once, when you create it.</p>
          {writable.size > 0 && (
            <Button className="mt-5" onClick={onCreate}>
              Create your first key
            </Button>
          )}
        </Empty>
      ) : (
        <>
          <Table label="Active keys" head={<KeyHead />}>
            {shown.visible.map(toRow)}
          </Table>
          <More {...shown} />
        </>
      )}
      {ended.length > 0 && (
        <section className="mt-8">
          <Button look="quiet" size="small" aria-expanded={withEnded} onClick={() => setWithEnded(!withEnded)}>
            {withEnded ? "Hide" : "Show"} {ended.length} inactive {ended.length === 1 ? "key" : "keys"}
          </Button>
          {withEnded && (
            <>
              <div className="mt-3">
                <Table label="Inactive keys" head={<KeyHead />}>
                  {shownEnded.visible.map(toRow)}
                </Table>
              </div>
              <More {...shownEnded} />
            </>
          )}
        </section>
      )}
      {ActDialog && (
        <Suspense>
          {/* A new instance per key, so that no state of the previous key remains. */}
          <ActDialog
            key={`${act.what} ${act.target.id}`}
            target={act.target}
            open={act.isOpen}
            onClose={() => setAct({ ...act, isOpen: false })}
          />
        </Suspense>
      )}
    </>
  );
}

function describe(isAll: boolean, hasTeams: boolean): string {
  if (isAll) return "API keys of all accounts.";
  return hasTeams ? "API keys of your account and teams." : "Your API keys.";
}

function isFound({ name, display }: Key, searchText: string, owner = ""): boolean {
  return hasWords(`${name} ${display} ${owner}`, searchText);
}
