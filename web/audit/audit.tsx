import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { AuditEntry } from "../../gen/parley/console/v1/audit_pb.js";
import { Administration } from "../administration/administration.tsx";
import { accountsQuery } from "../api/accounts.ts";
import { adminKeysQuery } from "../api/admin-keys.ts";
import { entriesQuery } from "../api/audit.ts";
import { keysQuery } from "../api/keys.ts";
import { useRoleNames } from "../api/roles.ts";
import { useMay } from "../api/session.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { Button, buttonClass } from "../components/button.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { Table } from "../components/table.tsx";
import { PATHS } from "../paths.ts";
import { EntryDetails } from "./entry-details.tsx";
import { EntryHead, EntryRow } from "./entry-row.tsx";
import { Export } from "./export.tsx";
import { type Conditions, toFilter, useConditions } from "./filter.ts";
import { Filters } from "./filters.tsx";
import type { Names } from "./words.ts";

/** Page of the audit log. */
export default function Audit() {
  const [conditions, change] = useConditions();
  return (
    <Administration
      title="Audit log"
      description="Changes and sign-ins, newest first, kept for 400 days."
      actions={
        <div className="flex flex-wrap items-center justify-end gap-2">
          {useMay("audit.stream") && (
            <Link href={PATHS.adminReceivers} className={buttonClass("secondary", "small")}>
              Receivers
            </Link>
          )}
          <Export filterNow={() => toFilter(conditions, Date.now())} />
        </div>
      }
    >
      {() => <Entries conditions={conditions} onChange={change} />}
    </Administration>
  );
}

interface EntriesProps {
  readonly conditions: Conditions;
  readonly onChange: (changes: Partial<Conditions>) => void;
}

function Entries({ conditions, onChange }: EntriesProps) {
  const { data: accounts = [] } = useQuery({ ...accountsQuery, enabled: useMay("accounts.read") });
  const { data: keys = [] } = useQuery(keysQuery);
  const { data: adminKeys = [] } = useQuery({ ...adminKeysQuery, enabled: useMay("admin_keys.read") });
  const names: Names = {
    accounts: new Map(accounts.map(({ id, name }) => [id, name])),
    keys: new Map(keys.map(({ id, name }) => [id, name])),
    adminKeys: new Map(adminKeys.map(({ id, name }) => [id, name])),
    roles: useRoleNames(),
  };
  const key = JSON.stringify(conditions);
  return (
    <>
      <Filters conditions={conditions} accounts={accounts} names={names} onChange={onChange} />
      {/* A new instance per filter, so that no state of the previous filter remains. */}
      <EntryTable key={key} name={key} conditions={conditions} names={names} onChange={onChange} />
    </>
  );
}

interface EntryTableProps extends EntriesProps {
  /** Key of the conditions, for the cache of queries. */
  readonly name: string;
  readonly names: Names;
}

function EntryTable({ name, conditions, names, onChange }: EntryTableProps) {
  const [filter] = useState(() => toFilter(conditions, Date.now()));
  const entries = useInfiniteQuery(entriesQuery(filter, name));
  // Keeps the entry until the dialog has closed.
  const [shown, setShown] = useState<AuditEntry>();
  const [isOpen, setOpen] = useState(false);
  if (entries.isPending) return <Loading what="the audit log" />;
  if (entries.isLoadingError) return <Unavailable error={entries.error} onRetry={() => void entries.refetch()} />;
  const all = entries.data.pages.flatMap((page) => page.entries);
  if (all.length === 0) return <Empty title="No entries">No change and no sign-in matches these filters.</Empty>;
  return (
    <>
      <Table label="Audit log" head={<EntryHead />}>
        {all.map((entry) => (
          <EntryRow
            key={entry.sequence.toString()}
            entry={entry}
            names={names}
            onOpen={() => {
              setShown(entry);
              setOpen(true);
            }}
          />
        ))}
      </Table>
      {entries.isError && (
        <div className="mt-4">
          <Alert>Could not load more entries. Try again.</Alert>
        </div>
      )}
      {entries.hasNextPage && (
        <div className="mt-4 text-center">
          <Button look="secondary" busy={entries.isFetchingNextPage} onClick={() => void entries.fetchNextPage()}>
            {entries.isFetchingNextPage ? "Loading …" : "Show more"}
          </Button>
        </div>
      )}
      {shown !== undefined && (
        <EntryDetails entry={shown} names={names} open={isOpen} onClose={() => setOpen(false)} onFilter={onChange} />
      )}
    </>
  );
}
