import { lazy, Suspense, useEffect, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { Redirect, Route, Switch, useLocation } from "wouter";
import type { GetSessionResponse } from "../gen/parley/console/v1/session_pb.js";
import { forgetSession, sessionQuery } from "./api/session.ts";
import { Entrance } from "./sign-in/entrance.tsx";
import { readLinkToken } from "./sign-in/link-token.ts";
import { Unavailable } from "./components/alert.tsx";
import { Breakage } from "./components/breakage.tsx";
import { onDemand } from "./components/on-demand.tsx";
import { LoadingPage, Starting } from "./components/page.tsx";
import { isPagePath, PATHS } from "./paths.ts";
import { Shell } from "./layout/shell.tsx";

const Overview = onDemand(() => import("./overview/overview.tsx"), LoadingPage);
const Keys = onDemand(() => import("./keys/keys.tsx"), LoadingPage);
const OneKey = onDemand(() => import("./keys/key-page.tsx"), LoadingPage);
const EndUsers = onDemand(() => import("./keys/end-users.tsx"), LoadingPage);
const Account = onDemand(() => import("./account/account.tsx"), LoadingPage);
const Administration = onDemand(() => import("./administration/pages.tsx"), LoadingPage);
const SignIn = lazy(() => import("./sign-in/sign-in.tsx"));
const SignUp = lazy(() => import("./sign-in/sign-up.tsx"));
const Confirmed = onDemand(() => import("./sign-in/confirmed.tsx"), LoadingPage);
const SecondFactorDue = lazy(() => import("./sign-in/second-factor-due.tsx"));
const Invited = lazy(() => import("./sign-in/invited.tsx"));
const Models = onDemand(() => import("./models/models.tsx"), LoadingPage);
const OneModel = onDemand(() => import("./models/model-page.tsx"), LoadingPage);
const Requests = onDemand(() => import("./requests/requests.tsx"), LoadingPage);
const Request = onDemand(() => import("./requests/request.tsx"), LoadingPage);
const Playground = onDemand(() => import("./playground/playground.tsx"), LoadingPage);
const Alerts = onDemand(() => import("./alerts/alerts.tsx"), LoadingPage);
const Usage = onDemand(() => import("./usage/usage.tsx"), LoadingPage);
const NotFound = lazy(() => import("./layout/not-found.tsx"));

/** Root component: the pages of a session, or sign-in and sign-up. */
export function App() {
  const session = useQuery(sessionQuery);
  if (session.data !== undefined) {
    const { session: own } = session.data;
    return own === undefined ? <Outside known={session.data} /> : <Inside isDue={own.secondFactorDue} />;
  }
  if (session.isPending) return <Starting />;
  return (
    <Entrance title="No connection">
      <Unavailable error={session.error} onRetry={() => void session.refetch()} />
    </Entrance>
  );
}

/** Pages without a session. The URL stays the same, so its page opens after sign-in. */
function Outside({ known }: { readonly known: GetSessionResponse }) {
  const [path] = useLocation();
  useEffect(forgetSession, []);
  const signsIn =
    path === PATHS.signIn && (known.providerName !== "" || readLinkToken("link") + readLinkToken("reset") !== "");
  const isNew = known.acceptsPasswords && !signsIn && (known.needsOwner || path === PATHS.signUp);
  return (
    <Breakage path={path}>
      <Suspense fallback={<Starting />}>
        {!isPagePath(path) ? <NotFound /> : isNew ? <SignUp {...known} /> : <SignIn {...known} />}
      </Suspense>
    </Breakage>
  );
}

function Inside({ isDue }: { readonly isDue: boolean }) {
  const [path] = useLocation();
  // Stays true after the set-up, so that the page can show the recovery codes, which it has only once.
  const [isSettingUp, setSettingUp] = useState(isDue);
  if (isDue || isSettingUp) {
    return (
      <Suspense>
        <SecondFactorDue isDue={isDue} onDone={() => setSettingUp(false)} />
      </Suspense>
    );
  }
  return (
    <Shell>
      <Breakage path={path}>
        <Suspense fallback={<LoadingPage />}>
          <Switch>
            <Route path={PATHS.home} component={Overview} />
            <Route path={PATHS.keys} component={Keys} />
            <Route path={`${PATHS.keys}/:id`} component={OneKey} />
            <Route path={`${PATHS.keys}/:id/end-users`} component={EndUsers} />
            <Route path={PATHS.usage} component={Usage} />
            <Route path={PATHS.requests} component={Requests} />
            <Route path={`${PATHS.requests}/:id`} component={Request} />
            <Route path={PATHS.playground} component={Playground} />
            <Route path={PATHS.models} component={Models} />
            <Route path={`${PATHS.models}/*`} component={OneModel} />
            <Route path={PATHS.alerts} component={Alerts} />
            <Route path={PATHS.admin}>
              <Redirect to={PATHS.adminAccounts} replace />
            </Route>
            {path.startsWith(`${PATHS.admin}/`) && isPagePath(path) && <Route component={Administration} />}
            <Route path={PATHS.account} component={Account} />
            <Route path={PATHS.confirmed} component={Confirmed} />
            {readLinkToken("invitation") !== "" && <Route path={PATHS.signUp} component={Invited} />}
            <Route>{isPagePath(path) ? <Redirect to={PATHS.home} replace /> : <NotFound />}</Route>
          </Switch>
        </Suspense>
      </Breakage>
    </Shell>
  );
}
