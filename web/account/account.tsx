import { useMutation, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { accounts } from "../api/accounts.ts";
import { factorsQuery } from "../api/factors.ts";
import { askForPasskey } from "../api/passkeys.ts";
import { enter, mayWrite, openSessionsQuery, sessionQuery, sessions, useAccount } from "../api/session.ts";
import { queryClient } from "../api/query-client.ts";
import { settingsQuery } from "../api/settings.ts";
import { spendingQuery } from "../api/usage.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { notify } from "../components/notify.ts";
import { Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { Spent } from "../components/spent.tsx";
import { describeLimits, limitsInForce } from "../format/limits.ts";
import { roleName } from "../format/roles.ts";
import { Factors } from "./factors.tsx";
import { OwnTeams } from "./own-teams.tsx";
import { Routing } from "./routing.tsx";
import { Sessions } from "./sessions.tsx";

/** Page of the signed-in account. */
export default function Account() {
  const account = useAccount();
  const known = useQuery(sessionQuery).data;
  const hasPassword = known?.acceptsPasswords === true && known.session?.byProvider === false;
  const settings = useQuery(settingsQuery);
  const limits = limitsInForce(account.limits, settings.data?.accountLimits);
  const spending = useQuery(spendingQuery);
  return (
    <Page title="Account" description={account.email}>
      <div className="space-y-6">
        <Panel title="Profile">
          {mayWrite(account) && (
            <div className="mb-6 border-b border-line pb-6">
              <NameForm name={account.name} id={account.id} />
            </div>
          )}
          <dl className="grid gap-4 text-sm sm:grid-cols-2">
            <div>
              <dt className="text-muted">Role</dt>
              <dd className="mt-0.5">{roleName(account.role)}</dd>
            </div>
            <div>
              <dt className="text-muted">Account limits</dt>
              <dd className="mt-0.5">{describeLimits(limits).join(", ") || "None"}</dd>
            </div>
            <div>
              <dt className="text-muted">Spent this month (all keys)</dt>
              <dd className="mt-0.5">
                <Spent micro={spending.data?.spentMicroUsd} budget={limits?.monthlyBudgetMicroUsd} />
              </dd>
            </div>
          </dl>
        </Panel>
        {hasPassword && (
          <Panel title="Password" description="Changing your password signs out all other browsers.">
            <PasswordForm />
          </Panel>
        )}
        <Factors />
        <OwnTeams />
        {mayWrite(account) && <Routing />}
        <Panel title="Sessions" description="Where you are signed in.">
          <Sessions />
        </Panel>
      </div>
    </Page>
  );
}

function NameForm({ id, name }: { readonly id: string; readonly name: string }) {
  const rename = useMutation({
    mutationFn: (next: string) => accounts.update({ id, name: next }),
    onSuccess() {
      notify("Name saved.");
      return queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    },
  });
  return (
    <Form
      fields={["name"]}
      error={rename.error}
      onSubmit={(written) => rename.mutate(written.get("name"))}
      className="max-w-md space-y-5"
    >
      {(errors) => (
        <>
          <TextField label="Name" name="name" autoComplete="name" defaultValue={name} error={errors("name")} />
          <Button type="submit" look="secondary" busy={rename.isPending}>
            Save name
          </Button>
        </>
      )}
    </Form>
  );
}

function PasswordForm() {
  const fields = useRef<HTMLDivElement>(null);
  const acceptsPasskeys = useQuery(sessionQuery).data?.acceptsPasskeys === true;
  const passkeys = useQuery(factorsQuery).data?.passkeys ?? [];
  const hasPasskey = acceptsPasskeys && passkeys.length > 0;
  const change = useMutation({
    async mutationFn(written: Written) {
      const currentPassword = written.get("current_password");
      const passkeyJson = currentPassword === "" && hasPasskey ? await askForPasskey() : "";
      return sessions.changePassword({ currentPassword, passkeyJson, newPassword: written.get("new_password") });
    },
    onSuccess({ session }) {
      enter(session);
      notify("Password changed. Other browsers were signed out.");
      void queryClient.invalidateQueries({ queryKey: openSessionsQuery.queryKey });
      for (const input of fields.current?.querySelectorAll("input") ?? []) input.value = "";
    },
  });
  return (
    <Form
      fields={["current_password", "new_password"]}
      error={change.error}
      onSubmit={(written) => change.mutate(written)}
      className="max-w-md"
    >
      {(errors) => (
        <div ref={fields} className="space-y-5">
          <TextField
            label="Current password"
            name="current_password"
            type="password"
            autoComplete="current-password"
            hint={hasPasskey && "Leave it empty to use a passkey instead."}
            error={errors("current_password")}
          />
          <TextField
            label="New password"
            name="new_password"
            type="password"
            autoComplete="new-password"
            hint="At least 12 characters. Four unrelated words work well."
            error={errors("new_password")}
          />
          <Button type="submit" busy={change.isPending}>
            Change password
          </Button>
        </div>
      )}
    </Form>
  );
}
