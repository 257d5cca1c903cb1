import { useAccount } from "../api/session.ts";
import { SignOutButton } from "../layout/sign-out-button.tsx";
import { Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";

/** Page for a signed-in user who opened an invitation link. */
export default function Invited() {
  const { name, email } = useAccount();
  return (
    <Page title="Already signed in">
      <Panel title="This invitation is for a new account">
        <p className="text-[0.9375rem]">
          You are signed in as <bdi className="font-medium">{name}</bdi> ({email}). Sign out to create a new account
          with this invitation.
        </p>
        <div className="mt-5 flex flex-wrap items-center gap-x-5 gap-y-3">
          <SignOutButton>Sign out and continue</SignOutButton>
          <TextLink to={PATHS.keys}>Stay signed in</TextLink>
        </div>
      </Panel>
    </Page>
  );
}
