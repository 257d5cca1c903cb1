import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { type GetSessionResponse, SignUpMode } from "../../gen/parley/console/v1/session_pb.js";
import { enter, sessions } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { PATHS } from "../paths.ts";
import { Entrance } from "./entrance.tsx";
import { forgetLinkTokens, readLinkToken } from "./link-token.ts";

/** Makes an account: the administrator's on a fresh installation, and after that as the installation allows. */
export default function SignUp({
  signUpMode,
  needsAdministrator,
  needsSetupToken,
}: Pick<GetSessionResponse, "signUpMode" | "needsAdministrator" | "needsSetupToken">) {
  const [invitationToken] = useState(() => readLinkToken("invitation"));
  if (needsAdministrator && signUpMode === SignUpMode.CLOSED) {
    return (
      <Entrance
        title="Set up Parley"
        description="Nobody has an account here yet, and sign-up is closed. The first administrator is made on the command line of the machine that runs Parley."
      >
        <code className="block rounded-lg border border-line bg-sunken p-3 font-mono text-sm wrap-anywhere">
          npx parley accounts create --role administrator --email ADDRESS --password-stdin
        </code>
      </Entrance>
    );
  }
  if (needsAdministrator) {
    return (
      <Entrance
        title="Set up Parley"
        description="Nobody has an account here yet. Yours will be the administrator’s: it sees and changes everything, and takes over the keys that exist."
      >
        <SignUpForm
          invitationToken={invitationToken}
          asksForSetupToken={needsSetupToken && invitationToken === ""}
          action="Create the administrator"
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
        ? "Accounts are made with an invitation. Open the link that an administrator has sent you."
        : "New accounts are made by those who run this installation, on its command line.";
    return (
      <Entrance title="Sign-up is not open" description={description} footer={footer}>
        <p className="text-sm text-muted">If you were invited, make sure that the whole link was opened.</p>
      </Entrance>
    );
  }
  return (
    <Entrance title={invitationToken === "" ? "Create an account" : "Accept your invitation"} footer={footer}>
      <SignUpForm invitationToken={invitationToken} asksForSetupToken={false} action="Create account" />
    </Entrance>
  );
}

interface SignUpFormProps {
  readonly invitationToken: string;
  readonly asksForSetupToken: boolean;
  readonly action: string;
}

function SignUpForm({ invitationToken, asksForSetupToken, action }: SignUpFormProps) {
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
          <TextField label="E-mail" name="email" type="email" autoComplete="username" error={errors("email")} />
          <TextField
            label="Name (optional)"
            name="name"
            autoComplete="name"
            hint="How others see you. Without one, the part of your address before the @."
            error={errors("name")}
          />
          <TextField
            label="Password"
            name="password"
            type="password"
            autoComplete="new-password"
            hint="At least 12 characters. Four unrelated words are a good one."
            error={errors("password")}
          />
          {asksForSetupToken && (
            <TextField
              label="Setup token"
              name="setup_token"
              autoComplete="off"
              spellCheck={false}
              defaultValue={readLinkToken("setup")}
              hint="Parley prints it when it starts, in the link to this page. It is filled in when that link is opened."
            />
          )}
          <Button type="submit" busy={signUp.isPending} className="w-full">
            {signUp.isPending ? "Creating the account …" : action}
          </Button>
        </>
      )}
    </Form>
  );
}
