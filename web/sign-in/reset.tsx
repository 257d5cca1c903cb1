import { useMutation } from "@tanstack/react-query";
import { resetPassword } from "../api/passwords.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { Entrance } from "./entrance.tsx";
import { forgetLinkTokens } from "./link-token.ts";

interface ResetProps {
  /** Token of the link. */
  readonly token: string;
  readonly onDone: () => void;
}

/** Sets a new password by a link. */
export default function Reset({ token, onDone }: ResetProps) {
  const reset = useMutation({
    mutationFn: (newPassword: string) => resetPassword(token, newPassword),
    onSuccess: forgetLinkTokens,
  });
  const done = (): void => {
    forgetLinkTokens();
    onDone();
  };
  if (reset.isSuccess) {
    return (
      <Entrance title="Your password is set">
        <p role="status" className="text-[0.9375rem]">
          All browsers were signed out. Sign in with the new password.
        </p>
        <Button className="mt-5 w-full" onClick={done}>
          Go to the sign-in
        </Button>
      </Entrance>
    );
  }
  return (
    <Entrance
      title="Set a new password"
      description="All your sessions end. An authenticator app stays. Passkeys are removed, unless you have an app or a second factor is required here."
      footer={
        <Button look="quiet" size="small" onClick={done}>
          Back to the sign-in
        </Button>
      }
    >
      <Form fields={["new_password"]} error={reset.error} onSubmit={(form) => reset.mutate(form.get("new_password"))}>
        {(errors) => (
          <>
            <TextField
              label="New password"
              name="new_password"
              type="password"
              autoComplete="new-password"
              hint="At least 12 characters. Four unrelated words work well."
              error={errors("new_password")}
            />
            <Button type="submit" busy={reset.isPending} className="w-full">
              Set password
            </Button>
          </>
        )}
      </Form>
    </Entrance>
  );
}
