import { useAccount } from "../api/session.ts";
import { SignOutButton } from "../layout/sign-out-button.tsx";
import { Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";

/** Somebody has opened an invitation's link while they are signed in. */
export default function Invited() {
  const { name, email } = useAccount();
  return (
    <Page title="You are signed in already">
      <Panel title="This link invites somebody to make an account">
        <p className="text-[0.9375rem]">
          You are signed in as <bdi className="font-medium">{name}</bdi> ({email}), and the invitation is for a new
          account. To use it yourself, sign out first: this page then goes on with it.
        </p>
        <div className="mt-5 flex flex-wrap items-center gap-x-5 gap-y-3">
          <SignOutButton>Sign out and accept it</SignOutButton>
          <TextLink to={PATHS.keys}>Stay signed in</TextLink>
        </div>
      </Panel>
    </Page>
  );
}
