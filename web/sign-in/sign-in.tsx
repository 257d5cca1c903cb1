import { useMutation } from "@tanstack/react-query";
import { Link } from "wouter";
import { SignUpMode } from "../../gen/parley/console/v1/session_pb.js";
import { enter, sessions } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { PATHS } from "../paths.ts";
import { Entrance } from "./entrance.tsx";

/** Sign-in page. */
export default function SignIn({ signUpMode }: { readonly signUpMode: SignUpMode }) {
  const signIn = useMutation({
    mutationFn: (credentials: { email: string; password: string }) => sessions.signIn(credentials),
    onSuccess: ({ session }) => enter(session),
  });
  return (
    <Entrance title="Sign in" footer={<Newcomers signUpMode={signUpMode} />}>
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
            <Button type="submit" busy={signIn.isPending} className="w-full">
              {signIn.isPending ? "Signing in …" : "Sign in"}
            </Button>
          </>
        )}
      </Form>
    </Entrance>
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
