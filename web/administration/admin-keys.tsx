import { lazy, Suspense, useId, useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { type AdminKey, AdminKeyState } from "../../gen/parley/console/v1/admin_key_pb.js";
import { accountsQuery } from "../api/accounts.ts";
import { adminKeys, adminKeysQuery, refreshAdminKeys } from "../api/admin-keys.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Fact } from "../components/fact.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { ActionsHead, RowActions } from "../components/row-actions.tsx";
import { DetailRow, RowOpener } from "../components/row-details.tsx";
import { Cell, OnPhones, Table } from "../components/table.tsx";
import { formatMoment } from "../format/time.ts";
import { Administration } from "./administration.tsx";

const CreateAdminKey = lazy(() => import("./create-admin-key.tsx"));

/** Number of keys shown initially, and added per click on "Show more". */
const SHOWN = 50;

/** Page of administration keys, with which programs call the dashboard's RPCs. */
export default function AdminKeys() {
  const [creation, setCreation] = useState<"open" | "closed">();
  return (
    <Administration
      title="Administration keys"
      description="Keys for Terraform and scripts, which call the RPCs of this dashboard. They cannot be used for completions."
      actions={useMay("admin_keys.write") && <Button onClick={() => setCreation("open")}>Create key</Button>}
    >
      {() => (
        <>
          <KeyList />
          {creation && (
            <Suspense>
              <CreateAdminKey open={creation === "open"} onClose={() => setCreation("closed")} />
            </Suspense>
          )}
        </>
      )}
    </Administration>
  );
}

function KeyList() {
  const list = useQuery(adminKeysQuery);
  const { data: accounts = [] } = useQuery({ ...accountsQuery, enabled: useMay("accounts.read") });
  const [act, setAct] = useState<{ readonly target: AdminKey; readonly isOpen: boolean }>();
  const shown = useShown(list.data ?? [], SHOWN);
  const revoke = useMutation({
    mutationFn: () => adminKeys.revoke({ id: act!.target.id }),
    async onSuccess() {
      setAct({ target: act!.target, isOpen: false });
      await refreshAdminKeys();
    },
  });
  if (list.isPending) return <Loading what="the keys" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.length === 0) return <Empty title="No administration keys">Programs have no access yet.</Empty>;
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  return (
    <>
      <Table label="Administration keys" head={<KeyHead />}>
        {shown.visible.map((key) => (
          <KeyRow
            key={key.id}
            value={key}
            maker={names.get(key.accountId) ?? key.accountId}
            onRevoke={() => setAct({ target: key, isOpen: true })}
          />
        ))}
      </Table>
      <More {...shown} />
      {act && (
        <ConfirmDialog
          open={act.isOpen}
          title="Revoke administration key?"
          description={
            <>
              Programs that use <bdi className="font-medium text-ink">{act.target.name}</bdi> are refused from now on.
            </>
          }
          action="Revoke key"
          doing="Revoking …"
          act={revoke}
          onClose={() => setAct({ ...act, isOpen: false })}
        />
      )}
    </>
  );
}

/** Grid columns on wide screens, where a key is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:grid-cols-[minmax(0,1.2fr)_9rem_minmax(0,1.4fr)_minmax(0,0.8fr)_6.75rem_7.5rem_1.5rem] lg:gap-x-4 lg:px-5 wide:grid-cols-[minmax(0,1.2fr)_9rem_minmax(0,1.6fr)_minmax(0,0.8fr)_6.75rem_7.5rem_4rem]";

const COLUMNS = ["Name", "Key", "Permissions", "Made by", "Last used", "Expires", "Actions"] as const;

function KeyHead() {
  return (
    <div role="row" className={`${GRID} py-1.5`}>
      {COLUMNS.map((column) => (
        <span key={column} role="columnheader">
          {column === "Actions" ? <ActionsHead /> : column}
        </span>
      ))}
    </div>
  );
}

interface KeyRowProps {
  readonly value: AdminKey;
  /** Name of the account that created the key. */
  readonly maker: string;
  readonly onRevoke: () => void;
}

function KeyRow({ value, maker, onRevoke }: KeyRowProps) {
  const { name, display, state, createTime, expireTime, lastUseTime } = value;
  const [isOpen, setOpen] = useState(false);
  const details = useId();
  const isActive = state === AdminKeyState.ACTIVE;
  const mayRevoke = useMay("admin_keys.write");
  const permissions = value.permissions.join(", ");
  return (
    <>
      <div role="row" className={`${GRID} py-1.5 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
        <Cell className="flex items-center gap-x-2">
          <RowOpener isOpen={isOpen} details={details} title={name} onToggle={() => setOpen(!isOpen)}>
            <bdi className="font-medium">{name}</bdi>
          </RowOpener>
          {!isActive && <Badge look="plain">{state === AdminKeyState.REVOKED ? "Revoked" : "Expired"}</Badge>}
        </Cell>
        <Cell className="truncate text-xs text-muted max-lg:hidden" title={display}>
          <code className="font-mono">{display}</code>
        </Cell>
        <Cell
          className="truncate max-lg:order-3 max-lg:col-span-2 max-lg:text-xs max-lg:text-muted"
          title={permissions}
        >
          <OnPhones>
            <code className="font-mono">{display}</code> ·{" "}
          </OnPhones>
          {permissions}
        </Cell>
        <Cell className="truncate max-lg:hidden" title={maker}>
          <bdi>{maker}</bdi>
        </Cell>
        <Cell className="self-center whitespace-nowrap text-muted max-lg:text-xs">
          {lastUseTime === undefined ? "Never used" : <RelativeTime time={lastUseTime} />}
        </Cell>
        <Cell className="whitespace-nowrap text-muted max-lg:hidden">
          {expireTime === undefined ? "Never" : <RelativeTime time={expireTime} />}
        </Cell>
        <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center">
          {isActive && mayRevoke && (
            <RowActions of={name} actions={[{ verb: "Revoke", Icon: Trash2, onClick: onRevoke }]} />
          )}
        </Cell>
      </div>
      {isOpen && (
        <DetailRow id={details} columns={COLUMNS.length}>
          <dl className="grid gap-x-8 gap-y-2 sm:grid-cols-3">
            <Fact name="Permissions">{permissions}</Fact>
            <Fact name="Made">
              {createTime && formatMoment(createTime)} by <bdi>{maker}</bdi>
            </Fact>
            <Fact name="Expires">{expireTime === undefined ? "Never" : formatMoment(expireTime)}</Fact>
          </dl>
        </DetailRow>
      )}
    </>
  );
}
