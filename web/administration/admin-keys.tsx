import { lazy, Suspense, useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type AdminKey, AdminKeyState } from "../../gen/parley/console/v1/admin_key_pb.js";
import { accountsQuery } from "../api/accounts.ts";
import { adminKeys, adminKeysQuery, refreshAdminKeys } from "../api/admin-keys.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { formatFromNow, formatMoment } from "../format/time.ts";
import { Administration } from "./administration.tsx";

const CreateAdminKey = lazy(() => import("./create-admin-key.tsx"));

/** Number of keys shown initially, and added per click on "Show more". */
const SHOWN = 25;

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
      <ul aria-label="Administration keys" className="divide-y divide-line rounded-xl border border-line bg-surface">
        {shown.visible.map((key) => (
          <KeyItem
            key={key.id}
            item={key}
            maker={names.get(key.accountId) ?? key.accountId}
            onRevoke={() => setAct({ target: key, isOpen: true })}
          />
        ))}
      </ul>
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

interface KeyItemProps {
  readonly item: AdminKey;
  /** Name of the account that created the key. */
  readonly maker: string;
  readonly onRevoke: () => void;
}

function KeyItem({ item, maker, onRevoke }: KeyItemProps) {
  const { name, display, permissions, state, createTime, expireTime, lastUseTime } = item;
  const isActive = state === AdminKeyState.ACTIVE;
  const mayRevoke = useMay("admin_keys.write");
  return (
    <li className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-5 py-4 sm:flex-nowrap">
      <div className="min-w-0">
        <h2 className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base font-semibold">
          <bdi className="wrap-anywhere">{name}</bdi>
          {state === AdminKeyState.REVOKED && <Badge look="plain">Revoked</Badge>}
          {state === AdminKeyState.EXPIRED && <Badge look="plain">Expired</Badge>}
        </h2>
        <p className="mt-0.5 font-mono text-sm wrap-anywhere">{display}</p>
        <p className="mt-0.5 text-sm wrap-anywhere">{permissions.join(", ")}</p>
        <p className="mt-0.5 flex flex-wrap gap-x-4 text-sm text-muted">
          <span>
            Made by <bdi>{maker}</bdi>
            {createTime && ` ${formatFromNow(createTime)}`}
          </span>
          <span title={lastUseTime && formatMoment(lastUseTime)}>
            {lastUseTime ? `Used ${formatFromNow(lastUseTime)}` : "Never used"}
          </span>
          {isActive && (
            <span title={expireTime && formatMoment(expireTime)}>
              {expireTime ? `Expires ${formatFromNow(expireTime)}` : "Does not expire"}
            </span>
          )}
        </p>
      </div>
      {isActive && mayRevoke && (
        <Button
          look="quiet danger"
          size="small"
          className="-ml-3 shrink-0 sm:ml-0"
          onClick={onRevoke}
          aria-label={`Revoke ${name}`}
        >
          Revoke
        </Button>
      )}
    </li>
  );
}
