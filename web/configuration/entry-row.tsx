import { Eye, KeyRound, Pencil, Trash2 } from "lucide-react";
import { ConfigurationSection as Section, type NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import { settingName } from "../administration/setting-names.ts";
import { Badge } from "../components/badge.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { ColumnHeads, Cell, None } from "../components/table.tsx";
import type { EntryAct } from "./dialog-props.ts";
import {
  describeCredential,
  isEditable,
  isStored,
  kindOf,
  originOf,
  settingOf,
  stateOf,
  summarize,
} from "./entry-words.ts";

interface EntryRowProps {
  readonly entry: NamedEntry;
  /** Whether the operator allows changes. */
  readonly isEnabled: boolean;
  readonly onAct: (act: EntryAct | "view") => void;
}

/** Grid columns on wide screens. On phones each entry is a card. */
const GRID =
  "grid grid-cols-2 gap-x-4 gap-y-3 lg:grid-cols-[minmax(0,1.3fr)_7rem_9rem_minmax(0,1fr)_minmax(0,1.6fr)_7rem] lg:gap-y-0";

const COLUMNS = ["Name", "Kind", "From", "State", "Details", "Actions"] as const;

/** Column headers. */
export function EntryHead() {
  return <ColumnHeads grid={GRID} columns={COLUMNS} />;
}

/** One entry of the table. */
export function EntryRow({ entry, isEnabled, onAct }: EntryRowProps) {
  const { name, section, problems, credential } = entry;
  const [state, look] = stateOf(entry);
  const kind = kindOf(section);
  const label = `${kind.toLowerCase()} ${name}`;
  const canChange = isStored(entry) && isEnabled;
  const setting = settingOf(entry);
  const details = summarize(entry);
  const isShort = section === Section.ALIASES || setting !== undefined;
  return (
    <div role="row" className={`${GRID} px-5 py-3 hover:bg-sunken lg:min-h-9 lg:items-center lg:py-1`}>
      <Cell className="max-lg:col-span-2">
        <bdi className="font-semibold wrap-anywhere">{name}</bdi>
      </Cell>
      <Cell label="Kind">{kind}</Cell>
      <Cell label="From">{originOf(entry)}</Cell>
      <Cell label="State">
        <Badge look={look}>{state}</Badge>
        {problems.map((problem) => (
          <span key={problem} className="mt-1 block text-xs wrap-anywhere text-muted">
            {problem}
          </span>
        ))}
      </Cell>
      <Cell
        label="Details"
        className="wrap-anywhere"
        detail={
          isStored(entry) && section === Section.PROVIDERS
            ? describeCredential(credential)
            : setting && settingName(setting)
        }
      >
        {details === "" ? <None /> : details}
      </Cell>
      <Cell className="max-lg:col-span-2">
        <span className="-mx-1.5 flex" role="group" aria-label={`Actions on ${label}`}>
          {isEditable(entry) && isEnabled && (
            <IconButton name={`Edit ${label}`} Icon={Pencil} onClick={() => onAct("edit")} />
          )}
          {canChange && section === Section.PROVIDERS && (
            <IconButton name={`Set API key of ${name}`} Icon={KeyRound} onClick={() => onAct("credential")} />
          )}
          {canChange && <IconButton name={`Remove ${label}`} Icon={Trash2} onClick={() => onAct("remove")} />}
          {!canChange && !isShort && entry.entry !== "" && (
            <IconButton name={`View ${label}`} Icon={Eye} onClick={() => onAct("view")} />
          )}
        </span>
      </Cell>
    </div>
  );
}
