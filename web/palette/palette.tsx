import { useMemo, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import {
  CirclePlus,
  KeyRound,
  Keyboard,
  Layers,
  LogOut,
  type LucideIcon,
  MessageSquareText,
  Moon,
  Search,
  Sun,
  UserRound,
} from "lucide-react";
import { useLocation } from "wouter";
import { accountsQuery } from "../api/accounts.ts";
import { readFailure } from "../api/failure.ts";
import { foundKeysQuery, MAX_FIND } from "../api/keys.ts";
import { mayWrite, useAccount, usePermissions, useSignOut } from "../api/session.ts";
import { settingsQuery } from "../api/settings.ts";
import { Alert } from "../components/alert.tsx";
import { Kbd } from "../components/kbd.tsx";
import { useSettled } from "../components/use-settled.ts";
import { PLACES, placesOf, REFERENCE } from "../layout/places.ts";
import { chooseTheme } from "../theme.ts";
import { type Command, type CommandGroup, type Findable, findCommands } from "./commands.ts";

interface PaletteProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onShortcuts: () => void;
}

/** Dialog that finds pages, keys, models, accounts and actions by their names. */
export default function Palette({ open, onClose, onShortcuts }: PaletteProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 bg-veil transition-opacity duration-100 data-ending-style:opacity-0 data-starting-style:opacity-0" />
        <Dialog.Popup
          aria-label="Search"
          className="fixed inset-x-4 top-[10dvh] mx-auto flex max-h-[75dvh] max-w-xl flex-col overflow-hidden rounded-2xl border border-line bg-surface text-ink shadow-2xl transition duration-100 data-ending-style:opacity-0 data-starting-style:opacity-0"
        >
          <Finder onClose={onClose} onShortcuts={onShortcuts} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Finder({ onClose, onShortcuts }: Pick<PaletteProps, "onClose" | "onShortcuts">) {
  const [query, setQuery] = useState("");
  const [, navigate] = useLocation();
  const signOut = useSignOut();
  const { findable, isSearching } = useFindable(query);
  const groups = useMemo(() => findCommands(findable, query), [findable, query]);
  const failing = signOut.isError ? readFailure(signOut.error) : undefined;
  const run = ({ act }: Command): void => {
    if ("signOut" in act) return signOut.mutate();
    onClose();
    if ("theme" in act) chooseTheme(act.theme);
    else if ("shortcuts" in act) onShortcuts();
    else if (act.isDocument === true) location.assign(act.to);
    else navigate(act.to);
  };
  return (
    <Autocomplete.Root
      open
      inline
      items={groups}
      filter={null}
      value={query}
      onValueChange={(text, { reason }) => reason !== "item-press" && setQuery(text)}
      itemToStringValue={({ label }: Command) => label}
      autoHighlight="always"
      keepHighlight
    >
      <div className="flex items-center gap-3 border-b border-line px-4">
        <Search aria-hidden className="size-4.5 shrink-0 text-muted" />
        <Autocomplete.Input
          aria-label="Search pages, keys, models and actions"
          placeholder="Search pages, keys, models and actions"
          className="min-h-13 min-w-0 flex-1 bg-transparent text-base outline-none placeholder:text-muted"
        />
        <Kbd>Esc</Kbd>
      </div>
      {failing && (
        <div className="p-3">
          <Alert>You are still signed in. {failing.message}</Alert>
        </div>
      )}
      <Autocomplete.Empty>
        <p className="px-4 py-6 text-center text-sm text-muted">{isSearching ? "Searching …" : "Nothing matches."}</p>
      </Autocomplete.Empty>
      <Autocomplete.List className="scroll-py-2 overflow-y-auto overscroll-contain p-2 data-empty:hidden">
        {(group: CommandGroup) => (
          <Autocomplete.Group key={group.value} items={[...group.items]} className="pb-2 last:pb-0">
            <Autocomplete.GroupLabel className="px-3 py-1.5 text-xs font-medium text-muted">
              {group.value}
            </Autocomplete.GroupLabel>
            <Autocomplete.Collection>
              {(command: Command) => <Row key={command.id} command={command} onRun={run} />}
            </Autocomplete.Collection>
          </Autocomplete.Group>
        )}
      </Autocomplete.List>
    </Autocomplete.Root>
  );
}

interface RowProps {
  readonly command: Command;
  readonly onRun: (command: Command) => void;
}

function Row({ command, onRun }: RowProps) {
  const { label, detail, kind, id } = command;
  const Icon = kind === "page" ? (PAGE_ICONS[id] ?? Layers) : ICONS[kind];
  return (
    <Autocomplete.Item
      value={command}
      onClick={() => onRun(command)}
      className="flex min-h-10 cursor-default items-center gap-3 rounded-lg px-3 text-sm data-highlighted:bg-accent-soft data-highlighted:text-accent-strong"
    >
      <Icon aria-hidden className="size-4 shrink-0" />
      <bdi className="min-w-0 truncate">{label}</bdi>
      {detail !== undefined && (
        <bdi className="ml-auto min-w-0 shrink-0 truncate pl-4 text-xs text-muted">{detail}</bdi>
      )}
    </Autocomplete.Item>
  );
}

const PAGE_ICONS: Readonly<Record<string, LucideIcon>> = Object.fromEntries(
  [...PLACES, REFERENCE].map(({ path, Icon }) => [path, Icon]),
);

const ICONS: Readonly<Record<Exclude<Command["kind"], "page">, LucideIcon>> = {
  key: KeyRound,
  model: Layers,
  playground: MessageSquareText,
  account: UserRound,
  create: CirclePlus,
  light: Sun,
  dark: Moon,
  shortcuts: Keyboard,
  "sign-out": LogOut,
};

/** Number of found keys among which those whose names begin with the text are first. */
const FOUND_KEYS = 50;

function useFindable(query: string): { readonly findable: Findable; readonly isSearching: boolean } {
  const account = useAccount();
  const permissions = usePermissions();
  const text = query.trim().slice(0, MAX_FIND);
  const find = useSettled(text);
  const found = useQuery({ ...foundKeysQuery("", find, FOUND_KEYS), enabled: find !== "" });
  const keys = found.data?.keys;
  const { data: accounts } = useQuery({ ...accountsQuery, enabled: permissions.includes("accounts.read") });
  const models = useQuery(settingsQuery).data?.models;
  const findable = useMemo(
    () => ({
      places: [...placesOf(account, permissions), REFERENCE],
      keys: keys ?? [],
      models: models ?? [],
      accounts: accounts ?? [],
      mayWrite: mayWrite(account),
    }),
    [account, permissions, keys, models, accounts],
  );
  return { findable, isSearching: find !== text || found.isFetching };
}
