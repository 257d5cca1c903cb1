import type { Account } from "../../gen/parley/console/v1/account_pb.js";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { hasWords } from "../format/search.ts";
import { keyPath, modelPath, PATHS } from "../paths.ts";

/** An entry of the palette. */
export interface Command {
  readonly id: string;
  readonly label: string;
  /** Distinguishes entries of the same name. */
  readonly detail?: string;
  readonly kind: "page" | "key" | "model" | "playground" | "account" | Action;
  readonly act: Act;
}

/** Name of an action. */
type Action = "create" | "light" | "dark" | "shortcuts" | "sign-out";

/** Effect of a command: opens a page by its address, or runs an action. */
type Act =
  | { readonly to: string; readonly isDocument?: true }
  | { readonly theme: "light" | "dark" }
  | { readonly shortcuts: true }
  | { readonly signOut: true };

export interface CommandGroup {
  readonly value: string;
  readonly items: readonly Command[];
}

interface PageOf {
  readonly path: string;
  readonly name: string;
}

/** Everything that the palette searches. The lists are as far as they are loaded. */
export interface Findable {
  readonly places: readonly PageOf[];
  readonly keys: readonly Key[];
  readonly models: readonly ModelSetting[];
  /** Empty for an account that does not see all accounts. */
  readonly accounts: readonly Account[];
  /** Whether the account may make keys and use models. */
  readonly mayWrite: boolean;
}

/** Maximum number of matches listed per group. */
const LISTED = 6;

/** Returns the commands that match all words of a query. Without a query only pages and actions. */
export function findCommands(
  { places, keys, models, accounts, mayWrite }: Findable,
  query: string,
): readonly CommandGroup[] {
  const isEmpty = query.trim() === "";
  const isPermitted = ({ kind }: Command): boolean => mayWrite || (kind !== "create" && kind !== "playground");
  const groups: readonly CommandGroup[] = [
    { value: "Pages", items: places.map(toPage) },
    { value: "Actions", items: ACTIONS.filter(isPermitted) },
    ...(isEmpty
      ? []
      : [
          { value: "Keys", items: keys.map(toKey) },
          { value: "Models", items: models.flatMap(toModel).filter(isPermitted) },
          { value: "Accounts", items: accounts.map(toAccount) },
        ]),
  ];
  return groups
    .map(({ value, items }) => ({ value, items: bestOf(items, query, isEmpty ? items.length : LISTED) }))
    .filter(({ items }) => items.length > 0);
}

/** Returns the matches, names that begin with the query first, otherwise in their order. */
function bestOf(commands: readonly Command[], query: string, most: number): readonly Command[] {
  const start = query.trim().toLowerCase();
  const found = commands.filter(({ label, detail = "" }) => hasWords(`${label} ${detail}`, query.trim()));
  const isFirst = ({ label }: Command): boolean => label.toLowerCase().startsWith(start);
  return [...found.filter(isFirst), ...found.filter((each) => !isFirst(each))].slice(0, most);
}

function toPage({ path, name }: PageOf): Command {
  return {
    id: path,
    label: name,
    kind: "page",
    act: { to: path, ...(path === PATHS.docs && { isDocument: true as const }) },
  };
}

const ACTIONS: readonly Command[] = [
  { id: "create", label: "Create key", kind: "create", act: { to: `${PATHS.keys}?create` } },
  { id: "light", label: "Use the light theme", kind: "light", act: { theme: "light" } },
  { id: "dark", label: "Use the dark theme", kind: "dark", act: { theme: "dark" } },
  { id: "shortcuts", label: "Show keyboard shortcuts", kind: "shortcuts", act: { shortcuts: true } },
  { id: "sign-out", label: "Sign out", kind: "sign-out", act: { signOut: true } },
];

function toKey({ id, name, display, state }: Key): Command {
  return {
    id,
    label: name,
    detail: state === KeyState.ACTIVE ? display : `${display}, inactive`,
    kind: "key",
    act: { to: keyPath(id) },
  };
}

function toModel({ id, embeddings }: ModelSetting): readonly Command[] {
  const page: Command = { id, label: id, kind: "model", act: { to: modelPath(id) } };
  if (embeddings) return [page];
  const label = `Open playground with ${id}`;
  const act = { to: withQuery(PATHS.playground, "model", id) };
  return [page, { id: `try ${id}`, label, kind: "playground", act }];
}

/** Returns the command that opens the usage of an account. */
function toAccount({ id, name, email }: Account): Command {
  return { id, label: name, detail: email, kind: "account", act: { to: withQuery(PATHS.usage, "account", id) } };
}

function withQuery(path: string, name: string, value: string): string {
  return `${path}?${new URLSearchParams({ [name]: value }).toString()}`;
}
