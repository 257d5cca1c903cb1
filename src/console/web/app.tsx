import { lazy, Suspense, useEffect } from "react";
import { useQuery } from "@tanstack/react-query";
import { Redirect, Route, Switch, useLocation } from "wouter";
import type { GetSessionResponse } from "../../../gen/parley/console/v1/session_pb.js";
import { forgetSession, sessionQuery } from "./api/session.ts";
import { Entrance } from "./entrance/entrance.tsx";
import { SignIn } from "./entrance/sign-in.tsx";
import { readInvitation } from "./entrance/invitation.ts";
import { SignUp } from "./entrance/sign-up.tsx";
import { Unavailable } from "./parts/alert.tsx";
import { Breakage } from "./parts/breakage.tsx";
import { Loading } from "./parts/page.tsx";
import { PATHS } from "./paths.ts";
import { Shell } from "./shell/shell.tsx";

const Keys = lazy(() => import("./keys/keys.tsx"));
const Account = lazy(() => import("./account/account.tsx"));
const AdminAccounts = lazy(() => import("./administration/accounts.tsx"));
const AdminInvitations = lazy(() => import("./administration/invitations.tsx"));
const AdminProviders = lazy(() => import("./administration/providers.tsx"));
const AdminSecurity = lazy(() => import("./administration/security.tsx"));
const AdminSettings = lazy(() => import("./administration/settings.tsx"));
const Invited = lazy(() => import("./entrance/invited.tsx"));
const Models = lazy(() => import("./models/models.tsx"));
const Requests = lazy(() => import("./requests/requests.tsx"));
const Request = lazy(() => import("./requests/request.tsx"));
const Playground = lazy(() => import("./playground/playground.tsx"));
const Usage = lazy(() => import("./usage/usage.tsx"));
const Docs = lazy(() => import("./docs/docs.tsx"));

/** Everything that is served: the reference for everybody, and the dashboard. */
export function App() {
  const [path] = useLocation();
  if (path !== PATHS.docs) return <Dashboard />;
  return (
    <Breakage>
      <Suspense fallback={<p className="sr-only">Loading</p>}>
        <Docs />
      </Suspense>
    </Breakage>
  );
}

/** The pages of whoever is signed in, or the way to become that. */
function Dashboard() {
  const session = useQuery(sessionQuery);
  if (session.data !== undefined) {
    return session.data.session === undefined ? <Outside known={session.data} /> : <Inside />;
  }
  if (session.isPending) return <p className="sr-only">Loading</p>;
  return (
    <Entrance title="Out of reach">
      <Unavailable error={session.error} onRetry={() => void session.refetch()} />
    </Entrance>
  );
}

/** Where somebody is taken in. The address stays as it was: it is shown after the sign-in. */
function Outside({ known }: { readonly known: GetSessionResponse }) {
  const [path] = useLocation();
  useEffect(forgetSession, []);
  if (known.needsAdministrator || path === PATHS.signUp) return <SignUp {...known} />;
  return <SignIn signUpMode={known.signUpMode} />;
}

function Inside() {
  return (
    <Shell>
      <Breakage>
        <Suspense fallback={<Loading what="the page" />}>
          <Switch>
            <Route path={PATHS.keys} component={Keys} />
            <Route path={PATHS.usage} component={Usage} />
            <Route path={PATHS.requests} component={Requests} />
            <Route path={`${PATHS.requests}/:id`} component={Request} />
            <Route path={PATHS.playground} component={Playground} />
            <Route path={PATHS.models} component={Models} />
            <Route path={PATHS.adminAccounts} component={AdminAccounts} />
            <Route path={PATHS.adminInvitations} component={AdminInvitations} />
            <Route path={PATHS.adminProviders} component={AdminProviders} />
            <Route path={PATHS.adminSecurity} component={AdminSecurity} />
            <Route path={PATHS.adminSettings} component={AdminSettings} />
            <Route path={PATHS.account} component={Account} />
            {readInvitation() !== "" && <Route path={PATHS.signUp} component={Invited} />}
            <Route>
              <Redirect to={PATHS.keys} replace />
            </Route>
          </Switch>
        </Suspense>
      </Breakage>
    </Shell>
  );
}
