import { Button } from "./button.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Dialog, DialogFooter } from "./dialog.tsx";

interface ShownOnceProps {
  readonly open: boolean;
  readonly title: string;
  readonly description: string;
  readonly secret: string;
  readonly onDone: () => void;
}

/** Dialog with a secret that the server returns only once. */
export function ShownOnce({ open, title, description, secret, onDone }: ShownOnceProps) {
  return (
    <Dialog open={open} sticky title={title} description={description} onClose={onDone}>
      <div className="flex flex-wrap items-center gap-3 rounded-lg border border-line bg-sunken p-3">
        <code data-testid="secret" className="min-w-0 flex-1 basis-60 font-mono text-sm break-all select-all">
          {secret}
        </code>
        <CopyButton text={secret} what="the key" look="primary" />
      </div>
      <DialogFooter>
        <Button onClick={onDone}>I have saved it</Button>
      </DialogFooter>
    </Dialog>
  );
}
