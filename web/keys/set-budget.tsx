import { useMutation } from "@tanstack/react-query";
import type { AttributedBudget, BudgetHolder } from "../../gen/parley/console/v1/attribution_pb.js";
import { attribution, refreshBudgets } from "../api/attribution.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { notify } from "../components/notify.ts";
import { formatBudget, writeUsd } from "../format/money.ts";
import { readAmount } from "./choices.ts";

interface SetBudgetProps {
  readonly keyId: string;
  readonly holder: BudgetHolder;
  readonly value: AttributedBudget;
  readonly open: boolean;
  readonly onClose: () => void;
}

const FIELD = "budget_micro_usd";

/** Dialog that gives one end user or session another budget in this period. */
export default function SetBudget({ keyId, holder, value, open, onClose }: SetBudgetProps) {
  const { name, isOwn, budgetMicroUsd, spentMicroUsd, heldMicroUsd } = value;
  const amounts = formatBudget({ spent: spentMicroUsd, held: heldMicroUsd, budget: budgetMicroUsd });
  const set = useMutation({
    mutationFn: (readBudget: () => bigint | undefined) => {
      const budget = readBudget();
      return attribution.setBudget({ keyId, holder, name, ...(budget !== undefined && { budgetMicroUsd: budget }) });
    },
    async onSuccess() {
      await refreshBudgets();
      notify("Budget saved.");
      onClose();
    },
  });
  return (
    <Dialog
      open={open}
      title="Change the budget"
      description={
        <>
          Of <bdi className="font-medium wrap-anywhere text-ink">{name}</bdi>, until the present period ends. Applies to
          the next request. {amounts.spent} of {amounts.budget} is spent.
        </>
      }
      onClose={onClose}
    >
      <Form fields={[FIELD]} error={set.error} onSubmit={(form) => set.mutate(() => readAmount(form, FIELD))}>
        {(errors) => (
          <>
            <TextField
              label="Budget (USD)"
              name={FIELD}
              inputMode="decimal"
              autoComplete="off"
              hint="Leave empty for the budget that the key gives to each."
              defaultValue={isOwn ? writeUsd(budgetMicroUsd) : ""}
              error={errors(FIELD)}
            />
            <DialogActions>
              <Button type="submit" busy={set.isPending}>
                {set.isPending ? "Saving …" : "Save"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
