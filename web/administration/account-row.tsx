import { Ban, CirclePlay, Pencil, ScrollText, ShieldOff, UserX } from "lucide-react";
import { type Account, AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { Badge } from "../components/badge.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { useIsWide } from "../components/media.ts";
import { RowActions } from "../components/row-actions.tsx";
import { APART, SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import type { Sorting } from "../components/sorting.ts";
import { Cell, None, OnPhones } from "../components/table.tsx";
import { describeLimits } from "../format/limits.ts";
import { formatCount } from "../format/number.ts";
import { roleName } from "../format/roles.ts";
import { formatMoment } from "../format/time.ts";
import { PATHS } from "../paths.ts";

/** Actions on an account. `disable` also enables a disabled account. */
export type AccountAct = "edit" | "reset factors" | "disable" | "offboard";

/** Columns by which accounts are sorted. */
export type AccountColumn = "name" | "email" | "role" | "keys" | "created";

/** Props of a dialog for one account. */
export interface AccountDialogProps {
  readonly target: Account;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Grid columns on wide screens, where an account is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:gap-x-4 lg:px-5 lg:grid-cols-[minmax(0,1fr)_minmax(0,1.2fr)_7rem_4rem_1.5rem] xl:grid-cols-[minmax(0,1.1fr)_minmax(0,1.3fr)_7rem_4rem_minmax(0,1fr)_7.5rem_1.5rem] wide:grid-cols-[minmax(0,1.1fr)_minmax(0,1.3fr)_7rem_4rem_minmax(0,1fr)_7.5rem_9rem]";

/** Classes of a column without room on narrow windows. */
const ROOMY = "lg:max-xl:hidden";

/** Column headers. */
export const ACCOUNT_COLUMNS: readonly SortedColumn<AccountColumn>[] = [
  { name: "Name", column: "name" },
  { name: "E-mail", column: "email" },
  { name: "Role", column: "role" },
  { name: "Keys", title: "Active keys", column: "keys", isHighestFirst: true, isRight: true },
  { name: "Limits", isApart: true, className: ROOMY },
  { name: "Created", column: "created", className: ROOMY },
  { name: "Actions" },
];

interface AccountHeadProps {
  readonly sorting: Sorting<AccountColumn> | undefined;
  readonly onSort: (sorting: Sorting<AccountColumn> | undefined) => void;
}

/** Column headers, by which the table is sorted. */
export function AccountHead(props: AccountHeadProps) {
  return <SortedHead columns={ACCOUNT_COLUMNS} grid={GRID} {...props} />;
}

interface AccountRowProps {
  readonly account: Account;
  /** Names of custom roles by ID. */
  readonly roleNames: ReadonlyMap<string, string>;
  readonly isOwn: boolean;
  readonly onAct: (act: AccountAct) => void;
}

/** One account of the table. */
export function AccountRow({ account, roleNames, isOwn, onAct }: AccountRowProps) {
  const { id, name, email, role, limits, createTime, disableTime, workingKeys = 0n } = account;
  const isDisabled = disableTime !== undefined;
  const isWide = useIsWide();
  const isLead = role === AccountRole.ADMINISTRATOR || role === AccountRole.OWNER;
  const limitText = describeLimits(limits).join(", ");
  return (
    <div role="row" className={`${GRID} py-2 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="flex items-center gap-x-2">
        <bdi className="truncate font-medium" title={name}>
          {name}
        </bdi>
        {isDisabled && (
          <span title={`Disabled on ${formatMoment(disableTime)}`}>
            <Badge look="danger">
              Disabled
              {/* The name needs the room. */}
              <span className="max-2xl:hidden">
                {" "}
                <RelativeTime time={disableTime} />
              </span>
            </Badge>
          </span>
        )}
        {isOwn && <Badge look="plain">You</Badge>}
      </Cell>
      <Cell className="truncate max-lg:order-3 max-lg:text-xs max-lg:text-muted" title={email}>
        {email === "" ? (
          <span className="text-muted" title="Sign-in is not possible">
            No e-mail address
          </span>
        ) : (
          email
        )}
        <OnPhones>{limitText !== "" && ` · ${limitText}`}</OnPhones>
      </Cell>
      <Cell className="max-lg:text-right">
        {isLead ? <Badge look="good">{roleName(account, roleNames)}</Badge> : roleName(account, roleNames)}
      </Cell>
      <Cell className="text-right max-lg:order-3 max-lg:text-xs max-lg:text-muted">
        {workingKeys === 0n && isWide ? <None /> : formatCount(workingKeys)}
        <OnPhones> {workingKeys === 1n ? "key" : "keys"}</OnPhones>
      </Cell>
      <Cell className={`truncate max-lg:hidden ${APART} ${ROOMY}`} title={limitText}>
        {limitText || <span className="text-muted">Default</span>}
      </Cell>
      <Cell className={`whitespace-nowrap text-muted max-lg:hidden ${ROOMY}`}>
        {createTime ? <RelativeTime time={createTime} /> : <None />}
      </Cell>
      <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center">
        <RowActions
          of={name}
          actions={[
            { verb: "Edit", Icon: Pencil, onClick: () => onAct("edit") },
            {
              verb: "Audit log",
              name: `Audit log of ${name}`,
              Icon: ScrollText,
              href: `${PATHS.adminAudit}?account=${id}`,
            },
            email === "" || isOwn
              ? []
              : {
                  verb: "Reset factors",
                  name: `Reset factors of ${name}`,
                  Icon: ShieldOff,
                  onClick: () => onAct("reset factors"),
                },
            isDisabled
              ? { verb: "Enable", Icon: CirclePlay, onClick: () => onAct("disable") }
              : [
                  { verb: "Disable", Icon: Ban, onClick: () => onAct("disable") },
                  { verb: "Offboard", Icon: UserX, onClick: () => onAct("offboard") },
                ],
          ].flat()}
        />
      </Cell>
    </div>
  );
}
