import { Ban, CirclePlay, Pencil, ScrollText, ShieldOff, UserX } from "lucide-react";
import { Link } from "wouter";
import { type Account, AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { Badge } from "../components/badge.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { APART, SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import type { Sorting } from "../components/sorting.ts";
import { Cell, ICON_BUTTON, None } from "../components/table.tsx";
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

/** Grid columns on wide screens, where an account is one line. On phones it is a card. */
const GRID =
  "grid grid-cols-2 gap-x-4 gap-y-2 lg:grid-cols-[minmax(0,1fr)_minmax(0,1.2fr)_7rem_4rem_9rem] lg:gap-y-0 xl:grid-cols-[minmax(0,1.1fr)_minmax(0,1.3fr)_7rem_4rem_minmax(0,1fr)_7.5rem_9rem]";

/** Classes of a column without room on narrow windows. */
const ROOMY = "lg:max-xl:hidden";

const COLUMNS: readonly SortedColumn<AccountColumn>[] = [
  { name: "Name", column: "name" },
  { name: "E-mail", column: "email" },
  { name: "Role", column: "role" },
  { name: "Keys", title: "Active keys", column: "keys", isRight: true },
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
  return <SortedHead columns={COLUMNS} grid={GRID} {...props} />;
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
  const isLead = role === AccountRole.ADMINISTRATOR || role === AccountRole.OWNER;
  const limitText = describeLimits(limits).join(", ");
  return (
    <div role="row" className={`${GRID} px-5 py-3 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="max-lg:col-span-2">
        <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5 lg:flex-nowrap">
          <bdi className="font-medium wrap-anywhere lg:truncate" title={name}>
            {name}
          </bdi>
          {isDisabled && (
            <span title={`Disabled on ${formatMoment(disableTime)}`}>
              <Badge look="danger">
                Disabled
                {/* The name needs the room. */}
                <span className="lg:max-2xl:hidden">
                  {" "}
                  <RelativeTime time={disableTime} />
                </span>
              </Badge>
            </span>
          )}
          {isOwn && <Badge look="plain">You</Badge>}
        </span>
      </Cell>
      <Cell className="wrap-anywhere max-lg:col-span-2">
        {email === "" ? (
          <span className="text-muted" title="Sign-in is not possible">
            No e-mail address
          </span>
        ) : (
          <span className="lg:block lg:truncate" title={email}>
            {email}
          </span>
        )}
      </Cell>
      <Cell label="Role">
        {isLead ? <Badge look="good">{roleName(account, roleNames)}</Badge> : roleName(account, roleNames)}
      </Cell>
      <Cell label="Active keys" className="lg:text-right">
        {workingKeys === 0n ? <None /> : formatCount(workingKeys)}
      </Cell>
      <Cell label="Limits" className={`${APART} ${ROOMY}`}>
        <span className="lg:block lg:truncate" title={limitText}>
          {limitText || <span className="text-muted">Default</span>}
        </span>
      </Cell>
      <Cell label="Created" className={`whitespace-nowrap text-muted ${ROOMY}`}>
        {createTime ? <RelativeTime time={createTime} /> : <None />}
      </Cell>
      <Cell className="max-lg:col-span-2">
        <span className="-mx-1.5 flex" role="group" aria-label={`Account ${name}`}>
          <IconButton name={`Edit ${name}`} Icon={Pencil} onClick={() => onAct("edit")} />
          <Link
            href={`${PATHS.adminAudit}?account=${id}`}
            className={ICON_BUTTON}
            aria-label={`Audit log of ${name}`}
            title={`Audit log of ${name}`}
          >
            <ScrollText aria-hidden className="size-4" />
          </Link>
          {email !== "" && !isOwn && (
            <IconButton name={`Reset factors of ${name}`} Icon={ShieldOff} onClick={() => onAct("reset factors")} />
          )}
          <IconButton
            name={`${isDisabled ? "Enable" : "Disable"} ${name}`}
            Icon={isDisabled ? CirclePlay : Ban}
            onClick={() => onAct("disable")}
          />
          {!isDisabled && <IconButton name={`Offboard ${name}`} Icon={UserX} onClick={() => onAct("offboard")} />}
        </span>
      </Cell>
    </div>
  );
}
