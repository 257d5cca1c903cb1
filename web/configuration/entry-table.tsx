import { useState } from "react";
import type { ListEntriesResponse, NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import { SearchField, SelectField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Table } from "../components/table.tsx";
import { formatCount } from "../format/number.ts";
import { hasWords } from "../format/search.ts";
import type { EntryAct } from "./dialog-props.ts";
import { EntryHead, EntryRow } from "./entry-row.tsx";
import { hasProblem, isStored, kindOf, KINDS, originOf, stateOf } from "./entry-words.ts";

/** Number of entries shown initially, and added per click on "Show more". */
const SHOWN = 50;

const FILTERS: readonly (readonly [name: string, has: (entry: NamedEntry) => boolean])[] = [
  ["All", () => true],
  ...KINDS.map(([section, , all]) => [all, (entry: NamedEntry) => entry.section === section] as const),
  ["Stored", isStored],
  ["With a problem", hasProblem],
];

interface EntryTableProps {
  readonly list: ListEntriesResponse;
  readonly onAct: (act: EntryAct | "view", target: NamedEntry) => void;
}

/** Table of all entries, with search and filter. */
export function EntryTable({ list: { entries, enabled }, onAct }: EntryTableProps) {
  const [searchText, setSearchText] = useState("");
  const [filter, setFilter] = useState("All");
  const has = FILTERS.find(([name]) => name === filter)![1];
  const found = entries.filter((entry) => has(entry) && hasWords(textOf(entry), searchText));
  const shown = useShown(found, SHOWN);
  const problems = entries.filter(hasProblem).length;
  return (
    <>
      <div className="mb-4 grid gap-3 sm:grid-cols-[20rem_12rem]">
        <SearchField label="Find an entry" value={searchText} onChange={setSearchText} />
        <SelectField label="Show" isLabelHidden value={filter} onChange={(event) => setFilter(event.target.value)}>
          {FILTERS.map(([name]) => (
            <option key={name} value={name}>
              {name === "With a problem" ? `${name} (${problems})` : name}
            </option>
          ))}
        </SelectField>
      </div>
      <p role="status" className={found.length === 0 ? "py-8 text-muted" : "mb-2 text-sm text-muted"}>
        {found.length === 0
          ? "No entry matches."
          : found.length === 1
            ? "1 entry"
            : `${formatCount(found.length)} entries`}
      </p>
      {found.length > 0 && (
        <Table label="Entries" head={<EntryHead />}>
          {shown.visible.map((entry) => (
            <EntryRow
              key={`${entry.section} ${entry.origin} ${entry.name}`}
              entry={entry}
              isEnabled={enabled}
              onAct={(act) => onAct(act, entry)}
            />
          ))}
        </Table>
      )}
      <More {...shown} />
    </>
  );
}

function textOf(entry: NamedEntry): string {
  return `${entry.name} ${kindOf(entry.section)} ${originOf(entry)} ${stateOf(entry)[0]}`;
}
