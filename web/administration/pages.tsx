import { Route, Switch } from "wouter";
import { PATHS } from "../paths.ts";
import { Accounts } from "./accounts.tsx";
import { Invitations } from "./invitations.tsx";
import { Providers } from "./providers.tsx";
import { Security } from "./security.tsx";
import { Settings } from "./settings.tsx";

/** All administration pages, in one chunk. */
export default function AdministrationPages() {
  return (
    <Switch>
      <Route path={PATHS.adminAccounts} component={Accounts} />
      <Route path={PATHS.adminInvitations} component={Invitations} />
      <Route path={PATHS.adminProviders} component={Providers} />
      <Route path={PATHS.adminSecurity} component={Security} />
      <Route path={PATHS.adminSettings} component={Settings} />
    </Switch>
  );
}
