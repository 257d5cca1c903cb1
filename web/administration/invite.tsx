import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { TeamRole } from "../../gen/parley/console/v1/team_role_pb.js";
import { accounts, refreshInvitations } from "../api/accounts.ts";
import { sessionQuery, useMay } from "../api/session.ts";
import { teamsQuery } from "../api/teams.ts";
import { Button } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { closeAndReset, Dialog, DialogActions, DialogFooter } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { readRoleValue } from "../format/roles.ts";
import { TEAM_ROLE_NAMES } from "../format/team-roles.ts";
import { PATHS } from "../paths.ts";
import { RoleField } from "./role-field.tsx";

/** Dialog that creates an invitation and shows its link. */
export default function Invite({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const { providerName = "", acceptsPasswords = true } = useQuery(sessionQuery).data ?? {};
  const create = useMutation({
    mutationFn: (form: Written) =>
      accounts.createInvitation({
        email: form.get("email").trim(),
        ...readRoleValue(form.get("role")),
        ...(form.get("team_id") !== "" && {
          teamId: form.get("team_id"),
          teamRole: Number(form.get("team_role")) as TeamRole,
        }),
      }),
    onSuccess: refreshInvitations,
  });
  const close = (): void => closeAndReset(onClose, create);
  if (create.data !== undefined) {
    const email = create.data.invitation?.email ?? "";
    if (!acceptsPasswords) return <AtProvider open={open} name={providerName} email={email} onDone={close} />;
    // Browsers do not send the fragment to servers.
    const link = `${location.origin}${PATHS.signUp}#invitation=${create.data.token}`;
    return <LinkOnce open={open} link={link} email={email} onDone={close} />;
  }
  return (
    <Dialog
      open={open}
      title="Create an invitation"
      description={`${acceptsPasswords ? "You get a link to share." : `It is used at the first sign-in with ${providerName}.`} Parley does not send e-mail.`}
      onClose={close}
    >
      <Form
        fields={["email", "role", "team_id", "team_role"]}
        error={create.error}
        onSubmit={(form) => create.mutate(form)}
      >
        {(errors) => (
          <>
            <TextField
              label={acceptsPasswords ? "E-mail (optional)" : "E-mail"}
              name="email"
              type="email"
              autoComplete="off"
              hint={hintOf(providerName, acceptsPasswords)}
              error={errors("email")}
            />
            <RoleField defaultValue={String(AccountRole.DEVELOPER)} error={errors("role")} />
            <TeamFields errors={errors} />
            <DialogActions>
              <Button type="submit" busy={create.isPending}>
                {create.isPending ? "Creating …" : acceptsPasswords ? "Create link" : "Create invitation"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}

/** Fields for the team that the person joins. Renders nothing if there is no team to which the account may add members. */
function TeamFields({ errors }: { readonly errors: (field: string) => string | undefined }) {
  const { data: all = [] } = useQuery(teamsQuery);
  const mayAll = useMay("members.write");
  const teams = all.filter(({ role }) => mayAll || role === TeamRole.MAINTAINER);
  const [teamId, setTeamId] = useState("");
  if (teams.length === 0) return null;
  return (
    <div className="grid gap-5 sm:grid-cols-2">
      <SelectField
        label="Team (optional)"
        name="team_id"
        value={teamId}
        onChange={(event) => setTeamId(event.target.value)}
        error={errors("team_id")}
      >
        <option value="">None</option>
        {teams.map(({ account }) => (
          <option key={account?.id} value={account?.id}>
            {account?.name}
          </option>
        ))}
      </SelectField>
      {teamId !== "" && (
        <SelectField label="Role in the team" name="team_role" error={errors("team_role")}>
          {TEAM_ROLE_NAMES.map(([role, name]) => (
            <option key={role} value={role}>
              {name}
            </option>
          ))}
        </SelectField>
      )}
    </div>
  );
}

function hintOf(providerName: string, acceptsPasswords: boolean): string {
  if (!acceptsPasswords)
    return `${providerName} must have verified the address. If the configuration assigns roles by groups, the groups decide the role.`;
  const both = providerName === "" ? "" : ` With an address, signing in with ${providerName} works too.`;
  return `Restricts the invitation to this address. If empty, anyone with the link can use it.${both}`;
}

interface AtProviderProps {
  readonly open: boolean;
  readonly name: string;
  readonly email: string;
  readonly onDone: () => void;
}

/** Explains how to use the invitation if sign-in with a password is off. */
function AtProvider({ open, name, email, onDone }: AtProviderProps) {
  return (
    <Dialog
      open={open}
      title="Invitation created"
      description={
        <>
          <bdi>{email}</bdi> gets an account at the first sign-in with {name} within 7 days, at this address:
        </>
      }
      onClose={onDone}
    >
      <Shared text={location.origin + PATHS.signIn} what="the address" />
      <DialogFooter>
        <Button onClick={onDone}>Done</Button>
      </DialogFooter>
    </Dialog>
  );
}

/** A text to share, with a button that copies it. */
function Shared({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div className="flex flex-wrap items-center gap-3 rounded-lg border border-line bg-sunken p-3">
      <code data-testid="invitation" className="min-w-0 flex-1 basis-60 font-mono text-sm break-all select-all">
        {text}
      </code>
      <CopyButton text={text} what={what} look="primary" />
    </div>
  );
}

interface LinkOnceProps {
  readonly open: boolean;
  readonly link: string;
  /** The only e-mail address that may use the invitation; empty for any. */
  readonly email: string;
  readonly onDone: () => void;
}

/** Shows the link. The server returns it only once. */
function LinkOnce({ open, link, email, onDone }: LinkOnceProps) {
  return (
    <Dialog
      open={open}
      sticky
      title="Invitation link"
      description={
        email === "" ? (
          "Copy the link now. It is shown only once. It creates one account and expires in 7 days."
        ) : (
          <>
            Copy the link now. It is shown only once. It creates an account for <bdi>{email}</bdi> and expires in 7
            days.
          </>
        )
      }
      onClose={onDone}
    >
      <Shared text={link} what="the link" />
      <DialogFooter>
        <Button onClick={onDone}>I have copied it</Button>
      </DialogFooter>
    </Dialog>
  );
}
