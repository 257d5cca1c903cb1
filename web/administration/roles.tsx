import { lazy, Suspense, useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import type { CustomRole } from "../../gen/parley/console/v1/role_pb.js";
import { refreshRoles, roles, rolesQuery } from "../api/roles.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Empty, Loading } from "../components/page.tsx";
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
function RoleList({ onAct }: { readonly onAct: ((what: Act["what"], target: CustomRole) => void) | undefined }) {
  const list = useQuery(rolesQuery);
  if (list.isPending) return <Loading what="the roles" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.roles.length === 0)
    return <Empty title="No custom roles">A custom role allows its accounts the permissions that you choose.</Empty>;
  return (
    <ul aria-label="Custom roles" className="divide-y divide-line rounded-xl border border-line bg-surface">
      {list.data.roles.map((role) => (
        <li
          key={role.id}
          className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-5 py-4 sm:flex-nowrap"
        >
          <div className="min-w-0">
            <h2 className="text-base font-semibold">
              <bdi className="wrap-anywhere">{role.name}</bdi>
            </h2>
            <p className="mt-0.5 text-sm wrap-anywhere">{role.permissions.join(", ")}</p>
            <p className="mt-0.5 text-sm text-muted">
              {role.base === AccountRole.VIEWER ? "A viewer" : "A developer"} in the own account and in teams.{" "}
              <code className="font-mono">{role.id}</code>
            </p>
          </div>
          {onAct !== undefined && (
            <div className="-mx-3 flex shrink-0 sm:mx-0" role="group" aria-label={`Role ${role.name}`}>
              <Button look="quiet" size="small" aria-label={`Edit ${role.name}`} onClick={() => onAct("edit", role)}>
                Edit
              </Button>
              <Button
                look="quiet danger"
                size="small"
                aria-label={`Remove ${role.name}`}
                onClick={() => onAct("remove", role)}
              >
                Remove
              </Button>
            </div>
          )}
        </li>
      ))}
    </ul>
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
