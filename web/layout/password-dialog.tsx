import { useMutation, useQuery } from "@tanstack/react-query";
import { factorsQuery } from "../api/factors.ts";
import { askForPasskey } from "../api/passkeys.ts";
import { passwordRequest } from "../api/password-request.ts";
import { enter, sessionQuery, sessions, useAccount } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { ProviderConfirmation } from "./provider-confirmation.tsx";

/** Dialog for the password, or the OpenID provider, opened when a call requires a recent confirmation. Shown above other dialogs. */
export default function PasswordDialog({ open }: { readonly open: boolean }) {
  const { email } = useAccount();
  const known = useQuery(sessionQuery).data;
  const own = useQuery({ ...factorsQuery, enabled: open && known?.acceptsPasskeys === true }).data;
  const hasPasskey = known?.acceptsPasskeys === true && own !== undefined && own.passkeys.length > 0;
  const confirm = useMutation({
    mutationFn: async (password: string | undefined) =>
      sessions.reauthenticate(password === undefined ? { passkeyJson: await askForPasskey() } : { password }),
    onSuccess({ session }) {
      enter(session);
      passwordRequest.succeed();
    },
  });
  const close = (): void => {
    confirm.reset();
    passwordRequest.dismiss();
  };
  if (known?.session?.byProvider === true) {
    return (
      <Dialog
        open={open}
        title="Confirm that it is you"
        description={`You signed in a while ago. Confirm with ${known.providerName} to continue.`}
        onClose={close}
      >
        <ProviderConfirmation name={known.providerName} />
      </Dialog>
    );
  }
  return (
    <Dialog
      open={open}
      title={hasPasskey ? "Confirm that it is you" : "Confirm your password"}
      description={`You signed in a while ago. Confirm ${hasPasskey ? "with a passkey or your password" : "your password"} to continue.`}
      onClose={close}
    >
      <Form fields={["password"]} error={confirm.error} onSubmit={(written) => confirm.mutate(written.get("password"))}>
        {(errors) => (
          <>
            {/* Password managers need the user name of the password. */}
            <input type="hidden" name="username" autoComplete="username" value={email} readOnly />
            <TextField
              label="Password"
              name="password"
              type="password"
              autoComplete="current-password"
              error={errors("password")}
            />
            <DialogActions>
              {hasPasskey && (
                <Button look="secondary" busy={confirm.isPending} onClick={() => confirm.mutate(undefined)}>
                  Use a passkey
                </Button>
              )}
              <Button type="submit" busy={confirm.isPending}>
                {confirm.isPending ? "Checking …" : "Continue"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
