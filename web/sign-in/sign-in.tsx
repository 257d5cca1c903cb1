import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { type GetSessionResponse, SignUpMode } from "../../gen/parley/console/v1/session_pb.js";
import { enter, sessions } from "../api/session.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { PATHS } from "../paths.ts";
import { ByLink } from "./by-link.tsx";
import { Entrance } from "./entrance.tsx";
import { readLinkToken } from "./link-token.ts";
import { readProblem } from "./problems.ts";
import { ProviderLink } from "./provider-link.tsx";

type SignInProps = Pick<GetSessionResponse, "signUpMode" | "providerName" | "acceptsPasswords">;

/** Sign-in page: the OpenID provider where there is one, passwords where they are accepted. */
export default function SignIn({ signUpMode, providerName, acceptsPasswords }: SignInProps) {
  const [linkToken] = useState(() => readLinkToken("link"));
  if (linkToken !== "") return <ByLink token={linkToken} />;
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
      </div>
    </Entrance>
  );
}

function PasswordForm({ look }: { readonly look: "primary" | "secondary" }) {
  const signIn = useMutation({
    mutationFn: (credentials: { email: string; password: string }) => sessions.signIn(credentials),
    onSuccess: ({ session }) => enter(session),
  });
  return (
    <Form
      fields={["email", "password"]}
      error={signIn.error}
      onSubmit={(written) => signIn.mutate({ email: written.get("email"), password: written.get("password") })}
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
          <Button type="submit" look={look} busy={signIn.isPending} className="w-full">
            {signIn.isPending ? "Signing in …" : "Sign in"}
          </Button>
        </>
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
