import { useMutation } from "@tanstack/react-query";
import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { accounts, refreshInvitations } from "../api/accounts.ts";
import { Button } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { readRoleValue } from "../format/roles.ts";
import { PATHS } from "../paths.ts";
import { RoleField } from "./role-field.tsx";

/** Dialog that creates an invitation and shows its link. */
export default function Invite({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const create = useMutation({
    mutationFn: (form: Written) =>
      accounts.createInvitation({ email: form.get("email").trim(), ...readRoleValue(form.get("role")) }),
    onSuccess: refreshInvitations,
  });
  const close = (): void => {
    onClose();
    // Resets after the closing animation, so that the content does not change while the dialog is visible.
    setTimeout(() => create.reset(), 200);
  };
  if (create.data !== undefined) {
    // Browsers do not send the fragment to servers.
    const link = `${location.origin}${PATHS.signUp}#invitation=${create.data.token}`;
    return <LinkOnce open={open} link={link} email={create.data.invitation?.email ?? ""} onDone={close} />;
  }
  return (
    <Dialog
      open={open}
      title="Create an invitation"
      description="You get a link to share. Parley does not send e-mail."
      onClose={close}
    >
      <Form fields={["email", "role"]} error={create.error} onSubmit={(form) => create.mutate(form)}>
        {(errors) => (
          <>
            <TextField
              label="E-mail (optional)"
              name="email"
              type="email"
              autoComplete="off"
              hint="Restricts the invitation to this address. If empty, anyone with the link can use it."
              error={errors("email")}
            />
            <RoleField defaultValue={String(AccountRole.DEVELOPER)} error={errors("role")} />
            <DialogActions>
              <Button type="submit" busy={create.isPending}>
                {create.isPending ? "Creating …" : "Create link"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}

interface LinkOnceProps {
  readonly open: boolean;
  readonly link: string;
  /** The only e-mail address that may use the invitation; empty for any. */
  readonly email: string;
  readonly onDone: () => void;
}

/** Shows the link. The server returns it only once. */
function LinkOnce({ open, link, email, onDone }: LinkOnceProps) {
  return (
    <Dialog
      open={open}
      sticky
      title="Invitation link"
      description={
        email === "" ? (
          "Copy the link now. It is shown only once. It creates one account and expires in 7 days."
        ) : (
          <>
            Copy the link now. It is shown only once. It creates an account for <bdi>{email}</bdi> and expires in 7
            days.
          </>
        )
      }
      onClose={onDone}
    >
      <div className="flex flex-wrap items-center gap-3 rounded-lg border border-line bg-sunken p-3">
        <code data-testid="invitation" className="min-w-0 flex-1 basis-60 font-mono text-sm break-all select-all">
          {link}
        </code>
        <CopyButton text={link} what="the link" look="primary" />
      </div>
      <div className="mt-6 flex justify-end">
        <Button onClick={onDone}>I have copied it</Button>
      </div>
    </Dialog>
  );
}
