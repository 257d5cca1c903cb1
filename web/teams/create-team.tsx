import { useMutation } from "@tanstack/react-query";
import { AccountKind } from "../../gen/parley/console/v1/account_pb.js";
import { refreshTeams, teams } from "../api/teams.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { readLimits } from "../keys/choices.ts";
import { BUDGET_FIELD, LIMIT_FIELDS, Limits } from "../keys/limits.tsx";

/** Dialog that creates a team or service account. */
export default function CreateTeam({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const create = useMutation({
    mutationFn: async (form: Written) => {
      const kind: AccountKind = Number(form.get("kind"));
      return teams.create({ name: form.get("name"), kind, limits: readLimits(form) });
    },
    async onSuccess() {
      onClose();
      await refreshTeams();
    },
  });
  return (
    <Dialog
      open={open}
      title="Create a team"
      description="An account without sign-in. Its members share its keys, limits, usage and requests."
      onClose={onClose}
    >
      <Form
        fields={["name", "kind", ...LIMIT_FIELDS.map(([name]) => name), BUDGET_FIELD]}
        error={create.error}
        onSubmit={(form) => create.mutate(form)}
      >
        {(errors) => (
          <>
            <TextField label="Name" name="name" autoComplete="off" error={errors("name")} />
            <SelectField
              label="Kind"
              name="kind"
              hint="A service account is for a program. Its members manage it."
              error={errors("kind")}
            >
              <option value={AccountKind.TEAM}>Team</option>
              <option value={AccountKind.SERVICE}>Service account</option>
            </SelectField>
            <Limits note="Shared by all keys of the team. Leave empty to use the default limits." errors={errors} />
            <DialogActions>
              <Button type="submit" busy={create.isPending}>
                {create.isPending ? "Creating …" : "Create team"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
