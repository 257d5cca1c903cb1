import { lazy, Suspense, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { Ban, CircleCheck, Pencil, Users } from "lucide-react";
import { type Account, AccountKind } from "../../gen/parley/console/v1/account_pb.js";
import type { Team } from "../../gen/parley/console/v1/team_pb.js";
import { teamsQuery } from "../api/teams.ts";
import { Administration } from "../administration/administration.tsx";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { SearchField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { RowActions } from "../components/row-actions.tsx";
import { APART, SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import { sortRows, type SortValues, useSorting } from "../components/sorting.ts";
import { Spent } from "../components/spent.tsx";
import { Cell, OnPhones, Table } from "../components/table.tsx";
import { describeLimits } from "../format/limits.ts";
import { formatCount } from "../format/number.ts";
import { hasWords } from "../format/search.ts";
import { formatFromNow } from "../format/time.ts";

const CreateTeam = lazy(() => import("./create-team.tsx"));
const DIALOGS = {
  members: lazy(() => import("./members.tsx")),
  edit: lazy(() => import("../administration/edit-account.tsx")),
  disable: lazy(() => import("../administration/disable-account.tsx")),
} as const;

type Act = keyof typeof DIALOGS;

/** Number of teams shown initially, and added per click on "Show more". */
const SHOWN = 50;
/** Number of teams above which the search field is shown. */
const MANY = 10;

/** Page of all teams, for administrators. */
export default function Teams() {
  const [creation, setCreation] = useState<"open" | "closed">();
  return (
    <Administration
      title="Teams"
      description="Accounts without sign-in, whose members share keys, limits and usage."
      actions={<Button onClick={() => setCreation("open")}>Create team</Button>}
    >
      {() => (
        <>
          <TeamList />
          {creation && (
            <Suspense>
              <CreateTeam open={creation === "open"} onClose={() => setCreation("closed")} />
            </Suspense>
          )}
        </>
      )}
    </Administration>
  );
}

function TeamList() {
  const list = useQuery(teamsQuery);
  const [searchText, setSearchText] = useState("");
  const [act, setAct] = useState<{ readonly what: Act; readonly target: Account; readonly isOpen: boolean }>();
  const found = (list.data ?? []).filter(({ account }) => hasWords(`${account?.name} ${account?.id}`, searchText));
  const [sorting, setSorting] = useSorting(COLUMNS);
  const shown = useShown(sortRows(found, SORT_VALUES, sorting), SHOWN);
  if (list.isPending) return <Loading what="the teams" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  const close = (): void => setAct(act && { ...act, isOpen: false });
  return (
    <>
      {list.data.length > MANY && (
        <div className="mb-4 sm:w-80">
          <SearchField label="Find a team" value={searchText} onChange={setSearchText} />
        </div>
      )}
      {found.length === 0 ? (
        <Empty title={list.data.length === 0 ? "No teams yet" : "No teams match"}>
          A team owns keys, so that they outlive the people who made them, and has limits of its own.
        </Empty>
      ) : (
        <Table label="Teams" head={<SortedHead columns={COLUMNS} grid={GRID} sorting={sorting} onSort={setSorting} />}>
          {shown.visible.map((team) => (
            <TeamRow
              key={team.account!.id}
              team={team}
              account={team.account!}
              onAct={(what) => setAct({ what, target: team.account!, isOpen: true })}
            />
          ))}
        </Table>
      )}
      <More {...shown} />
      {act && (
        <Suspense key={`${act.what} ${act.target.id}`}>
          <ActDialog {...act} onClose={close} />
        </Suspense>
      )}
    </>
  );
}

interface ActDialogProps {
  readonly what: Act;
  readonly target: Account;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

function ActDialog({ what, target, isOpen, onClose }: ActDialogProps) {
  if (what === "members") return <DIALOGS.members team={target} isWritable open={isOpen} onClose={onClose} />;
  const Opened = DIALOGS[what];
  return <Opened target={target} open={isOpen} onClose={onClose} />;
}

/** Grid columns on wide screens, where a team is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:grid-cols-[minmax(0,1.5fr)_6rem_6rem_minmax(0,1fr)_10rem_1.5rem] lg:gap-x-4 lg:px-5 wide:grid-cols-[minmax(0,1.5fr)_6rem_6rem_minmax(0,1fr)_10rem_6rem]";

type TeamColumn = "name" | "members" | "keys" | "budget" | "spent";

const COLUMNS: readonly SortedColumn<TeamColumn>[] = [
  { name: "Team", column: "name" },
  { name: "Members", column: "members", isHighestFirst: true, isRight: true },
  { name: "Active keys", column: "keys", isHighestFirst: true, isRight: true },
  { name: "Limits", column: "budget", title: "Limits, by the monthly budget", isHighestFirst: true, isApart: true },
  { name: "Spent this month", column: "spent", isHighestFirst: true, isRight: true },
  { name: "Actions" },
];

/** What a team is sorted by. */
const SORT_VALUES: SortValues<Team, TeamColumn> = {
  name: ({ account }) => account?.name.toLowerCase(),
  members: ({ members }) => members,
  keys: ({ account }) => account?.workingKeys,
  budget: ({ account }) => account?.limits?.monthlyBudgetMicroUsd,
  spent: ({ monthSpentMicroUsd }) => monthSpentMicroUsd,
};

interface TeamRowProps {
  readonly team: Team;
  readonly account: Account;
  readonly onAct: (act: Act) => void;
}

function TeamRow({ team, account, onAct }: TeamRowProps) {
  const { name, kind, limits, disableTime, workingKeys = 0n } = account;
  const isDisabled = disableTime !== undefined;
  const limitText = describeLimits(limits).join(", ");
  return (
    <div role="row" className={`${GRID} py-2 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="flex items-center gap-x-2">
        <bdi className="truncate font-medium" title={name}>
          {name}
        </bdi>
        {kind === AccountKind.SERVICE && <Badge look="plain">Service account</Badge>}
        {isDisabled && <Badge look="danger">Disabled {formatFromNow(disableTime)}</Badge>}
      </Cell>
      <Cell className="truncate max-lg:order-3 max-lg:text-xs max-lg:text-muted lg:text-right">
        {formatCount(team.members)}
        <OnPhones>
          {team.members === 1n ? " member" : " members"}
          {limitText !== "" && ` · ${limitText}`}
        </OnPhones>
      </Cell>
      <Cell className="text-right max-lg:order-3 max-lg:text-xs max-lg:text-muted">
        {formatCount(workingKeys)}
        <OnPhones> {workingKeys === 1n ? "key" : "keys"}</OnPhones>
      </Cell>
      <Cell className={`truncate max-lg:hidden ${APART}`} title={limitText}>
        {limitText || <span className="text-muted">Default</span>}
      </Cell>
      <Cell className="text-right whitespace-nowrap">
        <Spent micro={team.monthSpentMicroUsd} budget={limits?.monthlyBudgetMicroUsd} />
      </Cell>
      <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center">
        <RowActions
          of={name}
          actions={[
            { verb: "Members", name: `Members of ${name}`, Icon: Users, onClick: () => onAct("members") },
            { verb: "Edit", Icon: Pencil, onClick: () => onAct("edit") },
            {
              verb: isDisabled ? "Enable" : "Disable",
              Icon: isDisabled ? CircleCheck : Ban,
              onClick: () => onAct("disable"),
            },
          ]}
        />
      </Cell>
    </div>
  );
}
