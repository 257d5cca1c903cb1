import { useFactorPanels } from "../account/factors.tsx";
import { Button } from "../components/button.tsx";
import { Mark } from "../components/mark.tsx";
import { Loading, Title } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { PasswordOnDemand } from "../layout/password-on-demand.tsx";
import { SignOutButton } from "../layout/sign-out-button.tsx";

interface SecondFactorDueProps {
  /** False once a second factor is set up. */
  readonly isDue: boolean;
  readonly onDone: () => void;
}

/** Shown in place of all pages until a required second factor is set up. */
export default function SecondFactorDue({ isDue, onDone }: SecondFactorDueProps) {
  const panels = useFactorPanels();
  return (
    <main className="mx-auto w-full max-w-2xl px-5 py-10">
      <Mark />
      <Title className="mt-6 text-2xl font-semibold tracking-tight">Set up a second factor</Title>
      <p className="mt-1 mb-6 text-[0.9375rem] text-muted">
        {isDue
          ? "Signing in with a password alone is not enough here. Add one of these to continue."
          : "From now on, sign in with what you have set up."}
      </p>
      <div className="space-y-6">
        {panels === undefined && <Loading what="your second factors" shape="lines" />}
        {panels?.map((panel) => (
          <Panel key={panel.title} {...panel} />
        ))}
      </div>
      <div className="mt-6 flex flex-wrap gap-3">
        {!isDue && <Button onClick={onDone}>Continue to Parley</Button>}
        <SignOutButton>Sign out</SignOutButton>
      </div>
      <PasswordOnDemand />
    </main>
  );
}
