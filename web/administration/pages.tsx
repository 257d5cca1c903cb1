import { lazy } from "react";
import { Route, Switch } from "wouter";
import { PATHS } from "../paths.ts";
import { Accounts } from "./accounts.tsx";
import { Invitations } from "./invitations.tsx";
import { Providers } from "./providers.tsx";
import { Settings } from "./settings.tsx";

const AdminKeys = lazy(() => import("./admin-keys.tsx"));
const Roles = lazy(() => import("./roles.tsx"));
const Receivers = lazy(() => import("../audit/receivers.tsx"));
const Audit = lazy(() => import("../audit/audit.tsx"));
const Teams = lazy(() => import("../teams/teams.tsx"));
const Configuration = lazy(() => import("../configuration/configuration.tsx"));
const Versions = lazy(() => import("../configuration/versions.tsx"));

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
