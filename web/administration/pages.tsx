import { Route, Switch } from "wouter";
import { onDemand } from "../components/on-demand.tsx";
import { LoadingPage } from "../components/page.tsx";
import { PATHS } from "../paths.ts";
import { Accounts } from "./accounts.tsx";
import { Invitations } from "./invitations.tsx";
import { Providers } from "./providers.tsx";
import { Settings } from "./settings.tsx";

const AdminKeys = onDemand(() => import("./admin-keys.tsx"), LoadingPage);
const Roles = onDemand(() => import("./roles.tsx"), LoadingPage);
const Receivers = onDemand(() => import("../audit/receivers.tsx"), LoadingPage);
const Audit = onDemand(() => import("../audit/audit.tsx"), LoadingPage);
const Teams = onDemand(() => import("../teams/teams.tsx"), LoadingPage);
const Configuration = onDemand(() => import("../configuration/configuration.tsx"), LoadingPage);
const Versions = onDemand(() => import("../configuration/versions.tsx"), LoadingPage);

/** All administration pages. Audit log, teams and configuration are separate chunks. */
export default function AdministrationPages() {
  return (
    <Switch>
      <Route path={PATHS.adminAccounts} component={Accounts} />
      <Route path={PATHS.adminRoles} component={Roles} />
      <Route path={PATHS.adminKeys} component={AdminKeys} />
      <Route path={PATHS.adminTeams} component={Teams} />
      <Route path={PATHS.adminInvitations} component={Invitations} />
      <Route path={PATHS.adminConfiguration} component={Configuration} />
      <Route path={PATHS.adminVersions} component={Versions} />
      <Route path={PATHS.adminProviders} component={Providers} />
      <Route path={PATHS.adminAudit} component={Audit} />
      <Route path={PATHS.adminReceivers} component={Receivers} />
      <Route path={PATHS.adminSettings} component={Settings} />
    </Switch>
  );
}
