import { Eye, KeyRound, Pencil, Trash2 } from "lucide-react";
import { ConfigurationSection as Section, type NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import { settingName } from "../administration/setting-names.ts";
import { Badge } from "../components/badge.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { Cell, None, OnPhones } from "../components/table.tsx";
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

/** Grid columns on wide screens, where most entries are one line. On phones it has two or more. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto] gap-x-3 px-4 lg:grid-cols-[minmax(0,1.3fr)_6.5rem_8rem_minmax(0,1fr)_minmax(0,1.8fr)_6rem] lg:gap-x-4 lg:px-5";

const COLUMNS = ["Name", "Kind", "From", "State", "Details", "Actions"] as const;

/** Column headers. */
export function EntryHead() {
  return (
    <div role="row" className={`${GRID} py-1.5`}>
      {COLUMNS.map((column) => (
        <span key={column} role="columnheader">
          {column}
        </span>
      ))}
    </div>
  );
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
  const note =
    isStored(entry) && section === Section.PROVIDERS ? describeCredential(credential) : setting && settingName(setting);
  const isShort = section === Section.ALIASES || setting !== undefined;
  return (
    <div role="row" className={`${GRID} py-2 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="truncate font-medium" title={name}>
        <bdi>{name}</bdi>
      </Cell>
      <Cell className="max-lg:order-2 max-lg:text-xs max-lg:text-muted">
        {kind}
        <OnPhones>
          , {originOf(entry)}
          {details !== "" && ` · ${details}`}
          {note && ` · ${note}`}
        </OnPhones>
      </Cell>
      <Cell className="max-lg:hidden">{originOf(entry)}</Cell>
      <Cell className="lg:py-0.5">
        <Badge look={look}>{state}</Badge>
        {problems.map((problem) => (
          <span key={problem} className="mt-1 block text-xs wrap-anywhere text-muted">
            {problem}
          </span>
        ))}
      </Cell>
      <Cell className="truncate max-lg:hidden" title={note ? `${details}, ${note}` : details}>
        {details === "" ? <None /> : details} {note && <span className="ml-1 text-xs text-muted">{note}</span>}
      </Cell>
      <Cell className="flex justify-end max-lg:order-3 lg:justify-start">
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
