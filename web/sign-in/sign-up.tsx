import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { type GetSessionResponse, SignUpMode } from "../../gen/parley/console/v1/session_pb.js";
import { enter, invitationQuery, sessions } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { Starting } from "../components/page.tsx";
import { PATHS } from "../paths.ts";
import { Entrance } from "./entrance.tsx";
import { forgetLinkTokens, readLinkToken } from "./link-token.ts";
import { ProviderLink } from "./provider-link.tsx";

/**
 * Sign-up page: creates the first account on a new installation, and later accounts as the sign-up mode allows.
 */
export default function SignUp({
  signUpMode,
  needsOwner,
  needsSetupToken,
  providerName,
}: Pick<GetSessionResponse, "signUpMode" | "needsOwner" | "needsSetupToken" | "providerName">) {
  const [invitationToken] = useState(() => readLinkToken("invitation"));
  if (needsOwner && signUpMode === SignUpMode.CLOSED) {
    return (
      <Entrance
        title="Set up Parley"
        description="There are no accounts yet, and sign-up is closed. Create the first account on the command line of the server."
      >
        <code className="block rounded-lg border border-line bg-sunken p-3 font-mono text-sm wrap-anywhere">
          npx parley accounts create --role owner --email ADDRESS --password-stdin
        </code>
      </Entrance>
    );
  }
  if (needsOwner) {
    return (
      <Entrance
        title="Set up Parley"
        description="Create the first account. It becomes the owner and takes over all existing keys."
        footer={providerName !== "" && <ProviderLink name={providerName} look="secondary" />}
      >
        <SignUpForm
          invitationToken={invitationToken}
          asksForSetupToken={needsSetupToken && invitationToken === ""}
          action="Create owner"
        />
      </Entrance>
    );
  }
  const footer = (
    <>
      Have an account?{" "}
      <Link href={PATHS.signIn} className="font-medium text-accent underline underline-offset-2">
        Sign in
      </Link>
    </>
  );
  if (signUpMode !== SignUpMode.OPEN && invitationToken === "") {
    const description =
      signUpMode === SignUpMode.INVITED
        ? "Sign-up is by invitation only. Open the link that an administrator sent you."
        : "Sign-up is closed. Ask an administrator to create an account for you.";
    return (
      <Entrance title="Sign-up is not available" description={description} footer={footer}>
        <p className="text-sm text-muted">If you have an invitation, check that you opened the complete link.</p>
      </Entrance>
    );
  }
  if (invitationToken !== "") return <Acceptance token={invitationToken} providerName={providerName} footer={footer} />;
  return (
    <Entrance title="Create an account" footer={footer}>
      <SignUpForm invitationToken="" asksForSetupToken={false} action="Create account" />
    </Entrance>
  );
}

/** Sign-up form for an invitation, or the reason why the invitation is invalid. */
function Acceptance({
  token,
  providerName,
  footer,
}: {
  readonly token: string;
  readonly providerName: string;
  readonly footer: ReactNode;
}) {
  const invitation = useQuery(invitationQuery(token));
  if (invitation.isPending) return <Starting />;
  if (invitation.data?.valid === false) {
    return (
      <Entrance
        title="This invitation is not valid"
        description="It was already used or revoked, or it has expired."
        footer={footer}
      >
        <p className="text-sm text-muted">
          Check that you opened the complete link, or ask an administrator for a new one.
        </p>
      </Entrance>
    );
  }
  return (
    <Entrance title="Accept your invitation" footer={footer}>
      <SignUpForm
        invitationToken={token}
        email={invitation.data?.email}
        asksForSetupToken={false}
        action="Create account"
      />
      {providerName !== "" && invitation.data?.email !== "" && (
        <div className="mt-5 border-t border-line pt-5">
          <ProviderLink name={providerName} look="secondary" />
        </div>
      )}
    </Entrance>
  );
}

interface SignUpFormProps {
  readonly invitationToken: string;
  /** The e-mail address of the invitation. */
  readonly email?: string | undefined;
  readonly asksForSetupToken: boolean;
  readonly action: string;
}

function SignUpForm({ invitationToken, email, asksForSetupToken, action }: SignUpFormProps) {
  const signUp = useMutation({
    mutationFn: (written: Written) =>
      sessions.signUp({
        email: written.get("email"),
        name: written.get("name"),
        password: written.get("password"),
        invitationToken,
        setupToken: written.get("setup_token").trim(),
      }),
    onSuccess({ session }) {
      forgetLinkTokens();
      enter(session);
    },
  });
  return (
    <Form fields={["email", "name", "password"]} error={signUp.error} onSubmit={(written) => signUp.mutate(written)}>
      {(errors) => (
        <>
          <TextField
            label="E-mail"
            name="email"
            type="email"
            autoComplete="username"
            defaultValue={email}
            error={errors("email")}
          />
          <TextField
            label="Name (optional)"
            name="name"
            autoComplete="name"
            hint="Display name. Defaults to the part of your e-mail address before the @."
            error={errors("name")}
          />
          <TextField
            label="Password"
            name="password"
            type="password"
            autoComplete="new-password"
            hint="At least 12 characters. Four unrelated words work well."
            error={errors("password")}
          />
          {asksForSetupToken && (
            <TextField
              label="Setup token"
              name="setup_token"
              autoComplete="off"
              spellCheck={false}
              defaultValue={readLinkToken("setup")}
              hint="Parley prints it at startup, as part of the link to this page. Opening that link fills it in."
            />
          )}
          <Button type="submit" busy={signUp.isPending} className="w-full">
            {signUp.isPending ? "Creating account …" : action}
          </Button>
        </>
      )}
    </Form>
  );
}
