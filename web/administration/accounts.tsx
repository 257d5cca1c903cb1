import { lazy, Suspense, useState } from "react";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { type Account, AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { accountsQuery } from "../api/accounts.ts";
import { isPerson } from "../api/owners.ts";
import { useRoleNames } from "../api/roles.ts";
import { useAccount } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { SearchField, SelectField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Loading } from "../components/page.tsx";
import { sortRows, type SortValues, useSorting } from "../components/sorting.ts";
import { Table } from "../components/table.tsx";
import { formatCount } from "../format/number.ts";
import { roleName } from "../format/roles.ts";
import { hasWords } from "../format/search.ts";
import { ACCOUNT_COLUMNS, type AccountAct, type AccountColumn, AccountHead, AccountRow } from "./account-row.tsx";
import { Administration } from "./administration.tsx";

const DIALOGS = {
  edit: lazy(() => import("./edit-account.tsx")),
  "reset factors": lazy(() => import("./reset-factors.tsx")),
  disable: lazy(() => import("./disable-account.tsx")),
  offboard: lazy(() => import("./offboard-account.tsx")),
} as const satisfies Record<AccountAct, unknown>;

/** Number of accounts shown initially, and added per click on "Show more". */
const SHOWN = 50;

const FILTERS: readonly (readonly [name: string, has: (account: Account) => boolean])[] = [
  ["All", () => true],
  ["Owners", ({ role }) => role === AccountRole.OWNER],
  ["Administrators", ({ role }) => role === AccountRole.ADMINISTRATOR],
  ["Developers", ({ role }) => role === AccountRole.DEVELOPER],
  ["Custom roles", ({ role }) => role === AccountRole.CUSTOM],
  ["Viewers", ({ role }) => role === AccountRole.VIEWER],
  ["Disabled", ({ disableTime }) => disableTime !== undefined],
];

/** Page of all accounts, for administrators. */
export function Accounts() {
  return (
    <Administration title="Accounts" description="Who can sign in, and the limits shared by their keys.">
      {() => <AccountList />}
    </Administration>
  );
}

function AccountList() {
  const list = useQuery(accountsQuery);
  const own = useAccount();
  const roleNames = useRoleNames();
  const [searchText, setSearchText] = useState("");
  const [filter, setFilter] = useState("All");
  const [act, setAct] = useState<{ readonly what: AccountAct; readonly target: Account; readonly isOpen: boolean }>();
  const [sorting, setSorting] = useSorting(ACCOUNT_COLUMNS);
  const has = FILTERS.find(([name]) => name === filter)![1];
  const found = (list.data ?? []).filter(
    (account) =>
      isPerson(account) && has(account) && hasWords(`${account.name} ${account.email} ${account.id}`, searchText),
  );
  const shown = useShown(sortRows(found, sortValues(roleNames), sorting), SHOWN);
  if (list.isPending) return <Loading what="the accounts" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  const ActDialog = act && DIALOGS[act.what];
  return (
    <>
      <div className="mb-4 grid items-center gap-3 sm:grid-cols-[20rem_12rem_1fr]">
        <SearchField label="Find an account" value={searchText} onChange={setSearchText} />
        <SelectField label="Show" isLabelHidden value={filter} onChange={(event) => setFilter(event.target.value)}>
          {FILTERS.map(([name]) => (
            <option key={name}>{name}</option>
          ))}
        </SelectField>
        <p role="status" className="text-sm text-muted">
          {found.length === 0 ? "No accounts match." : describeCount(found.length)}
        </p>
      </div>
      {found.length > 0 && (
        <Table label="Accounts" head={<AccountHead sorting={sorting} onSort={setSorting} />}>
          {shown.visible.map((account) => (
            <AccountRow
              key={account.id}
              account={account}
              roleNames={roleNames}
              isOwn={account.id === own.id}
              onAct={(what) => setAct({ what, target: account, isOpen: true })}
            />
          ))}
        </Table>
      )}
      <More {...shown} />
      {ActDialog && (
        <Suspense>
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

/** What an account is sorted by. `roleNames`: those of custom roles by ID. */
function sortValues(roleNames: ReadonlyMap<string, string>): SortValues<Account, AccountColumn> {
  return {
    name: ({ name }) => name.toLowerCase(),
    email: ({ email }) => email.toLowerCase() || undefined,
    role: (account) => roleName(account, roleNames),
    keys: ({ workingKeys }) => workingKeys,
    created: ({ createTime }) => createTime && timestampMs(createTime),
  };
}

function describeCount(count: number): string {
  return count === 1 ? "1 account" : `${formatCount(count)} accounts`;
}
