import { useMutation, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { accounts } from "../api/accounts.ts";
import { factorsQuery } from "../api/factors.ts";
import { askForPasskey } from "../api/passkeys.ts";
import {
  enter,
  mayWrite,
  openSessionsQuery,
  sessionQuery,
  sessions,
  useAccount,
  useRoleName,
  useTeams,
} from "../api/session.ts";
import { queryClient } from "../api/query-client.ts";
import { settingsQuery } from "../api/settings.ts";
import { spendingQuery } from "../api/usage.ts";
import { Button } from "../components/button.tsx";
import { Fact } from "../components/fact.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { notify } from "../components/notify.ts";
import { Loading, Page } from "../components/page.tsx";
import { Panel, type PanelProps } from "../components/panel.tsx";
import { Sections } from "../components/sections.tsx";
import { Spent } from "../components/spent.tsx";
import { describeLimits, limitsInForce } from "../format/limits.ts";
import { useFactorPanels } from "./factors.tsx";
import { OwnTeams } from "./own-teams.tsx";
import { useRoutingPanels } from "./routing.tsx";
import { Sessions } from "./sessions.tsx";

/** Page of the signed-in account. */
export default function Account() {
  return (
    <Page title="Account" description={useAccount().email}>
      <Panels />
    </Page>
  );
}

function Panels() {
  const known = useQuery(sessionQuery).data;
  const hasPassword = known?.acceptsPasswords === true && known.session?.byProvider === false;
  const teams = useTeams();
  const factors = useFactorPanels();
  const routing = useRoutingPanels();
  if (factors === undefined || routing === undefined) return <Loading what="your account" shape="tiles" />;
  const panels: readonly PanelProps[] = [
    { title: "Profile", children: <Profile /> },
    ...(hasPassword ? [PASSWORD] : []),
    ...factors,
    { title: "Sessions", description: "Where you are signed in.", children: <Sessions /> },
    ...(teams.length > 0 ? [{ ...TEAMS, children: <OwnTeams teams={teams} /> }] : []),
    ...routing,
  ];
  return (
    <Sections titles={panels.map(({ title }) => title)}>
      {panels.map((panel) => (
        <Panel key={panel.title} {...panel} />
      ))}
    </Sections>
  );
}

const TEAMS = { title: "Teams", description: "You also see their keys, usage and requests." };

function Profile() {
  const account = useAccount();
  const settings = useQuery(settingsQuery);
  const limits = limitsInForce(account.limits, settings.data?.accountLimits);
  const spending = useQuery(spendingQuery);
  return (
    <>
      {mayWrite(account) && (
        <div className="mb-6 border-b border-line pb-6">
          <NameForm name={account.name} id={account.id} />
        </div>
      )}
      <dl className="grid gap-4 text-sm sm:grid-cols-2">
        <Fact name="Role">{useRoleName()}</Fact>
        <Fact name="Account limits">{describeLimits(limits).join(", ") || "None"}</Fact>
        <Fact name="Spent this month (all keys)">
          <Spent micro={spending.data?.spentMicroUsd} budget={limits?.monthlyBudgetMicroUsd} />
        </Fact>
      </dl>
    </>
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

const PASSWORD: PanelProps = {
  title: "Password",
  description: "Changing your password signs out all other browsers.",
  children: <PasswordForm />,
};
