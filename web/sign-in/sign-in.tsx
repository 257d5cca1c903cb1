import { ConnectError } from "@connectrpc/connect";
import { useMutation } from "@tanstack/react-query";
import { lazy, useState } from "react";
import { Link } from "wouter";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { type GetSessionResponse, SignUpMode } from "../../gen/parley/console/v1/session_pb.js";
import { enter, sessions } from "../api/session.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { PATHS } from "../paths.ts";
import { ByLink } from "./by-link.tsx";
import { Entrance } from "./entrance.tsx";
import { readLinkToken } from "./link-token.ts";
import { readProblem } from "./problems.ts";
import { ProviderLink } from "./provider-link.tsx";

const Forgot = lazy(() => import("./forgot.tsx"));
const Reset = lazy(() => import("./reset.tsx"));

type SignInProps = Pick<
  GetSessionResponse,
  "signUpMode" | "providerName" | "acceptsPasswords" | "acceptsPasskeys" | "offersPasswordReset"
>;

/** Sign-in page: the OpenID provider where there is one, passwords and passkeys where they are accepted. */
export default function SignIn(known: SignInProps) {
  const { signUpMode, providerName, acceptsPasswords } = known;
  const [linkToken] = useState(() => readLinkToken("link"));
  const [resetToken, setResetToken] = useState(() => readLinkToken("reset"));
  const [hasForgotten, setForgotten] = useState(false);
  if (linkToken !== "") return <ByLink token={linkToken} />;
  if (resetToken !== "") return <Reset token={resetToken} onDone={() => setResetToken("")} />;
  if (hasForgotten) return <Forgot onDone={() => setForgotten(false)} />;
  const hasProvider = providerName !== "";
  const problem = readProblem(location.search, providerName);
  return (
    <Entrance title="Sign in" footer={acceptsPasswords && <Newcomers signUpMode={signUpMode} />}>
      <div className="space-y-5">
        {problem !== undefined && <Alert>{problem}</Alert>}
        {hasProvider && <ProviderLink name={providerName} look="primary" />}
        {hasProvider && acceptsPasswords && (
          <p className="flex items-center gap-3 text-sm text-muted before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
            or with a password
          </p>
        )}
        {acceptsPasswords && <PasswordForm look={hasProvider ? "secondary" : "primary"} />}
        {known.acceptsPasskeys && <PasskeyButton />}
        {known.offersPasswordReset && (
          <Button look="quiet" size="small" className="w-full" onClick={() => setForgotten(true)}>
            Forgot your password?
          </Button>
        )}
      </div>
    </Entrance>
  );
}

function PasswordForm({ look }: { readonly look: "primary" | "secondary" }) {
  const [asksForCode, setAsksForCode] = useState(false);
  const signIn = useMutation({
    mutationFn: (written: Written) =>
      sessions.signIn({ email: written.get("email"), password: written.get("password"), code: written.get("code") }),
    onSuccess: ({ session }) => enter(session),
    onError: (error) => setAsksForCode((asks) => asks || needsCode(error)),
  });
  return (
    <Form
      fields={["email", "password", "code"]}
      error={needsCode(signIn.error) ? null : signIn.error}
      onSubmit={(written) => signIn.mutate(written)}
    >
      {(errors) => (
        <>
          <TextField label="E-mail" name="email" type="email" autoComplete="username" error={errors("email")} />
          <TextField
            label="Password"
            name="password"
            type="password"
            autoComplete="current-password"
            error={errors("password")}
          />
          {asksForCode && (
            <TextField
              label="Code"
              name="code"
              autoComplete="one-time-code"
              hint="Of your authenticator app, or a recovery code."
              ref={focus}
              error={errors("code")}
            />
          )}
          <Button type="submit" look={look} busy={signIn.isPending} className="w-full">
            {signIn.isPending ? "Signing in …" : "Sign in"}
          </Button>
        </>
      )}
    </Form>
  );
}

/** Whether the sign-in failed because it needs a code too. */
function needsCode(error: unknown): boolean {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  return info?.metadata["error_code"] === "second_factor_required";
}

function focus(input: HTMLInputElement | null): void {
  input?.focus();
}

function PasskeyButton() {
  const signIn = useMutation({
    mutationFn: async () => (await import("../api/passkeys.ts")).signInByPasskey(),
    onSuccess: ({ session }) => enter(session),
  });
  return (
    <Form fields={[]} error={signIn.error} onSubmit={() => signIn.mutate()}>
      {() => (
        <Button type="submit" look="secondary" busy={signIn.isPending} className="w-full">
          Sign in with a passkey
        </Button>
      )}
    </Form>
  );
}

/** Advice for users without an account. */
function Newcomers({ signUpMode }: { readonly signUpMode: SignUpMode }) {
  if (signUpMode !== SignUpMode.OPEN) return "New here? Ask an administrator for an invitation.";
  return (
    <>
      New here?{" "}
      <Link href={PATHS.signUp} className="font-medium text-accent underline underline-offset-2">
        Create an account
      </Link>
    </>
  );
}
