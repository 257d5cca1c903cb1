import { lazy, Suspense, useId, useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import type { CustomRole } from "../../gen/parley/console/v1/role_pb.js";
import { refreshRoles, roles, rolesQuery } from "../api/roles.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Fact } from "../components/fact.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { ActionsHead, RowActions } from "../components/row-actions.tsx";
import { DetailRow, RowOpener } from "../components/row-details.tsx";
import { Cell, Table } from "../components/table.tsx";
import { Administration } from "./administration.tsx";

const EditRole = lazy(() => import("./edit-role.tsx"));

interface Act {
  readonly what: "edit" | "remove";
  /** Undefined for a new role. */
  readonly target: CustomRole | undefined;
  readonly isOpen: boolean;
}

/** Page of custom roles. */
export default function Roles() {
  const mayWrite = useMay("roles.write");
  const [act, setAct] = useState<Act>();
  return (
    <Administration
      title="Roles"
      description="Custom roles, for accounts and invitations, in addition to owner, administrator, developer and viewer."
      actions={
        mayWrite && (
          <Button onClick={() => setAct({ what: "edit", target: undefined, isOpen: true })}>Create role</Button>
        )
      }
    >
      {() => (
        <>
          <RoleList onAct={mayWrite ? (what, target) => setAct({ what, target, isOpen: true }) : undefined} />
          {act?.what === "edit" && (
            <Suspense>
              <EditRole
                key={act.target?.id ?? "new"}
                target={act.target}
                open={act.isOpen}
                onClose={() => setAct({ ...act, isOpen: false })}
              />
            </Suspense>
          )}
          {act?.what === "remove" && (
            <RemoveRole
              key={act.target!.id}
              target={act.target!}
              open={act.isOpen}
              onClose={() => setAct({ ...act, isOpen: false })}
            />
          )}
        </>
      )}
    </Administration>
  );
}

/** `onAct`: undefined for accounts that cannot change roles. */
type OnAct = ((what: Act["what"], target: CustomRole) => void) | undefined;

function RoleList({ onAct }: { readonly onAct: OnAct }) {
  const list = useQuery(rolesQuery);
  if (list.isPending) return <Loading what="the roles" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.roles.length === 0)
    return <Empty title="No custom roles">A custom role allows its accounts the permissions that you choose.</Empty>;
  return (
    <Table label="Custom roles" head={<RoleHead />}>
      {list.data.roles.map((role) => (
        <RoleRow key={role.id} role={role} onAct={onAct} />
      ))}
    </Table>
  );
}

/** Grid columns on wide screens, where a role is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:grid-cols-[minmax(0,1fr)_minmax(0,2fr)_10rem_9rem_1.5rem] lg:gap-x-4 lg:px-5 wide:grid-cols-[minmax(0,1fr)_minmax(0,2fr)_10rem_9rem_4rem]";

const COLUMNS = ["Role", "Permissions", "Own account, teams", "ID", "Actions"] as const;

function RoleHead() {
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

function RoleRow({ role, onAct }: { readonly role: CustomRole; readonly onAct: OnAct }) {
  const { id, name, base } = role;
  const [isOpen, setOpen] = useState(false);
  const details = useId();
  const permissions = role.permissions.join(", ");
  return (
    <>
      <div role="row" className={`${GRID} py-1.5 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
        <Cell className="flex items-center">
          <RowOpener isOpen={isOpen} details={details} title={name} onToggle={() => setOpen(!isOpen)}>
            <bdi className="font-medium">{name}</bdi>
          </RowOpener>
        </Cell>
        <Cell
          className="truncate max-lg:order-3 max-lg:col-span-2 max-lg:text-xs max-lg:text-muted"
          title={permissions}
        >
          {permissions}
        </Cell>
        <Cell className="self-center truncate">{base === AccountRole.VIEWER ? "Viewer" : "Developer"}</Cell>
        <Cell className="truncate text-xs text-muted max-lg:hidden" title={id}>
          <code className="font-mono">{id}</code>
        </Cell>
        <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center">
          {onAct && (
            <RowActions
              of={name}
              actions={[
                { verb: "Edit", Icon: Pencil, onClick: () => onAct("edit", role) },
                { verb: "Remove", Icon: Trash2, onClick: () => onAct("remove", role) },
              ]}
            />
          )}
        </Cell>
      </div>
      {isOpen && (
        <DetailRow id={details} columns={COLUMNS.length}>
          <dl className="grid gap-x-8 gap-y-2 lg:grid-cols-[2fr_1fr]">
            <Fact name="In all accounts, and for the installation">{permissions}</Fact>
            <Fact name="ID">
              <code className="font-mono">{id}</code>
            </Fact>
          </dl>
        </DetailRow>
      )}
    </>
  );
}

interface RemoveRoleProps {
  readonly target: CustomRole;
  readonly open: boolean;
  readonly onClose: () => void;
}

function RemoveRole({ target: { id, name }, open, onClose }: RemoveRoleProps) {
  const remove = useMutation({
    mutationFn: () => roles.remove({ id }),
    async onSuccess() {
      onClose();
      await refreshRoles();
    },
  });
  return (
    <ConfirmDialog
      open={open}
      title={`Remove the role ${name}?`}
      description="Accounts with this role must get another one first."
      action="Remove role"
      doing="Removing …"
      act={remove}
      onClose={onClose}
    />
  );
}
