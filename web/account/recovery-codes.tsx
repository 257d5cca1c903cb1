import { Button } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Dialog, DialogFooter } from "../components/dialog.tsx";

interface RecoveryCodesProps {
  readonly codes: readonly string[];
  readonly onDone: () => void;
}

/** Shows recovery codes, which the server returns only once. */
export default function RecoveryCodes({ codes, onDone }: RecoveryCodesProps) {
  return (
    <Dialog
      open
      sticky
      title="Save your recovery codes"
      description="Each signs you in once in place of the app, with your password. They are shown only once."
      onClose={onDone}
    >
      <ul
        aria-label="Recovery codes"
        className="grid gap-x-6 gap-y-1 rounded-lg border border-line bg-sunken p-4 font-mono text-sm sm:grid-cols-2"
      >
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <DialogFooter>
        <CopyButton text={codes.join("\n")} what="the recovery codes" />
        <Button onClick={onDone}>I have saved them</Button>
      </DialogFooter>
    </Dialog>
  );
}
