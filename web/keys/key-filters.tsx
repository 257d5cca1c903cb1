import { MAX_FIND } from "../api/keys.ts";
import { ownerChoices, useOwners } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { Choose } from "../components/choose.tsx";
import { SearchField } from "../components/field.tsx";
import { SortField } from "../components/sort-field.tsx";
import type { Sorting } from "../components/sorting.ts";
import { KEY_COLUMNS, type KeyColumn } from "./key-row.tsx";

interface KeyFiltersProps {
  readonly searchText: string;
  readonly onSearch: (text: string) => void;
  readonly accountId: string;
  readonly onAccount: (accountId: string) => void;
  readonly sorting: Sorting<KeyColumn> | undefined;
  readonly onSort: (sorting: Sorting<KeyColumn> | undefined) => void;
}

/** Fields for the search, the owner and, where columns are missing, the order of keys. */
export default function KeyFilters(props: KeyFiltersProps) {
  const { searchText, onSearch, accountId, onAccount, sorting, onSort } = props;
  const account = useAccount();
  const owners = useOwners();
  return (
    <div className="mb-4 grid gap-3 sm:grid-cols-[20rem_14rem_17rem]">
      <SearchField label="Find a key" maxLength={MAX_FIND} value={searchText} onChange={onSearch} />
      {owners.length > 1 && (
        <Choose
          label="Owner"
          isLabelHidden
          value={accountId}
          all="All owners"
          choices={ownerChoices(owners, account.id)}
          onChange={onAccount}
        />
      )}
      <div className="2xl:hidden">
        <SortField columns={KEY_COLUMNS} sorting={sorting} onSort={onSort} usual="Newest first" />
      </div>
    </div>
  );
}
