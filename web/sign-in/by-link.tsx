import { useMutation } from "@tanstack/react-query";
import { readFailure } from "../api/failure.ts";
import { enter, sessions } from "../api/session.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Entrance } from "./entrance.tsx";
import { forgetLinkTokens } from "./link-token.ts";

/**
 * Sign-in with a link from the command line. Only a click on the button uses the link up, so that programs that follow
 * links do not.
 */
export function ByLink({ token }: { readonly token: string }) {
  const signIn = useMutation({
    mutationFn: () => sessions.signInByLink({ token }),
    onSuccess({ session }) {
      forgetLinkTokens();
      enter(session);
    },
  });
  const failing = signIn.isError ? readFailure(signIn.error) : undefined;
  return (
    <Entrance
      title="Sign in by link"
      description="This link was made on the command line of the server. It works once."
    >
      <div className="space-y-4">
        {failing && <Alert>{failing.message}</Alert>}
        <Button busy={signIn.isPending} className="w-full" onClick={() => signIn.mutate()}>
          {signIn.isPending ? "Signing in …" : "Sign in"}
        </Button>
      </div>
    </Entrance>
  );
}
