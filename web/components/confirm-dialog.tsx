import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Dialog, DialogActions } from "./dialog.tsx";
import { Form } from "./form.tsx";

interface ConfirmDialogProps {
  readonly open: boolean;
  readonly title: string;
  /** What will happen. */
  readonly description: ReactNode;
  /** What is done, on its button: `Revoke key`. */
  readonly action: string;
  /** The same while it is under way: `Revoking …`. */
  readonly doing: string;
  /** Default: danger. */
  readonly look?: "danger" | "primary";
  readonly act: { readonly error: Error | null; readonly isPending: boolean; readonly mutate: () => void };
  readonly onClose: () => void;
  /** What there is to choose first. */
  readonly children?: ReactNode;
}

/** Asks before something is done that others will notice. */
export function ConfirmDialog({
  open,
  title,
  description,
  action,
  doing,
  look = "danger",
  act,
  onClose,
  children,
}: ConfirmDialogProps) {
  return (
    <Dialog open={open} title={title} description={description} onClose={onClose}>
      <Form fields={[]} error={act.error} onSubmit={() => act.mutate()}>
        {() => (
          <>
            {children}
            <DialogActions>
              <Button type="submit" look={look} busy={act.isPending}>
                {act.isPending ? doing : action}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
