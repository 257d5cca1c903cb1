import { useMutation, useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Trash2 } from "lucide-react";
import type { TeamMember } from "../../gen/parley/console/v1/team_pb.js";
import { TeamRole } from "../../gen/parley/console/v1/team_role_pb.js";
import { membersQuery, refreshTeams, teams } from "../api/teams.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { readFailure } from "../api/failure.ts";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { Loading } from "../components/page.tsx";
import { TEAM_ROLE_NAMES, teamRoleName } from "../format/team-roles.ts";

interface MembersProps {
  readonly team: { readonly id: string; readonly name: string };
  /** Whether the members may be changed. */
  readonly isWritable: boolean;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Dialog of the members of a team. */
export default function Members({ team, isWritable, open, onClose }: MembersProps) {
  return (
    <Dialog open={open} wide title={`Members of ${team.name}`} description={DESCRIPTION} onClose={onClose}>
      <div className="space-y-6">
        <MemberList team={team} isWritable={isWritable} />
        {isWritable && <AddMember teamId={team.id} />}
        <DialogActions close="Done" />
      </div>
    </Dialog>
  );
}

const DESCRIPTION =
  "Maintainers manage members, keys, credentials and aliases; developers keys; viewers see keys, usage and requests.";

function MemberList({ team, isWritable }: Pick<MembersProps, "team" | "isWritable">) {
  const list = useQuery(membersQuery(team.id));
  const change = useMutation({
    mutationFn: async ({ member, role }: { readonly member: TeamMember; readonly role: TeamRole | undefined }) => {
      const { accountId } = member;
      const teamId = team.id;
      await (role === undefined
        ? teams.removeMember({ teamId, accountId })
        : teams.setMember({ teamId, accountId, role }));
    },
    onSuccess: refreshTeams,
  });
  if (list.isPending) return <Loading what="the members" shape="lines" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  return (
    <>
      {change.error !== null && <Alert>{readFailure(change.error)?.message}</Alert>}
      {list.data.length === 0 && <p className="text-muted">This team has no members.</p>}
      <ul aria-label="Members" className="divide-y divide-line">
        {list.data.map((member) => (
          <li key={member.accountId} className="flex items-center justify-between gap-x-3 py-1.5">
            <div className="min-w-0 text-sm">
              <p className="flex items-center gap-x-2 font-medium">
                <bdi className="truncate" title={member.name}>
                  {member.name}
                </bdi>
                {member.disabled && <Badge look="danger">Disabled</Badge>}
              </p>
              <p className="truncate text-muted" title={member.email}>
                {member.email}
              </p>
            </div>
            {isWritable ? (
              <div className="flex shrink-0 items-center gap-1">
                <RoleSelect
                  label={`Role of ${member.name}`}
                  value={member.role}
                  onChange={(role) => change.mutate({ member, role })}
                />
                <IconButton
                  name={`Remove ${member.name}`}
                  Icon={Trash2}
                  onClick={() => change.mutate({ member, role: undefined })}
                />
              </div>
            ) : (
              <Badge look="plain">{teamRoleName(member.role)}</Badge>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

interface RoleSelectProps {
  readonly label: string;
  readonly value: TeamRole;
  readonly onChange: (role: TeamRole) => void;
}

function RoleSelect({ label, value, onChange }: RoleSelectProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChange(Number(event.target.value))}
      className="min-h-9 rounded-lg border border-edge bg-surface px-2 text-sm"
    >
      {TEAM_ROLE_NAMES.map(([role, name]) => (
        <option key={role} value={role}>
          {name}
        </option>
      ))}
    </select>
  );
}

function AddMember({ teamId }: { readonly teamId: string }) {
  const heading = useId();
  // A new form after each addition.
  const [added, setAdded] = useState(0);
  const add = useMutation({
    mutationFn: (form: Written) => {
      const role: TeamRole = Number(form.get("role"));
      return teams.setMember({ teamId, email: form.get("email").trim(), role });
    },
    async onSuccess() {
      setAdded(added + 1);
      await refreshTeams();
    },
  });
  return (
    <section aria-labelledby={heading} className="border-t border-line pt-5">
      <h3 id={heading} className="mb-4 font-semibold">
        Add a member
      </h3>
      <Form key={added} fields={["email", "role"]} error={add.error} onSubmit={(form) => add.mutate(form)}>
        {(errors) => (
          <div className="grid items-start gap-4 sm:grid-cols-[2fr_1fr_auto]">
            <TextField label="E-mail" name="email" type="email" autoComplete="off" error={errors("email")} />
            <SelectField label="Role" name="role" error={errors("role")}>
              {TEAM_ROLE_NAMES.map(([role, name]) => (
                <option key={role} value={role}>
                  {name}
                </option>
              ))}
            </SelectField>
            <Button type="submit" look="secondary" busy={add.isPending} className="sm:mt-6.5">
              Add
            </Button>
          </div>
        )}
      </Form>
    </section>
  );
}
