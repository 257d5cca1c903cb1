import { useQuery } from "@tanstack/react-query";
import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { modelsQuery } from "../api/models.ts";
import { makes } from "../models/abilities.ts";
import { mayUse } from "../playground/setup.ts";
import { Button } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Dialog, DialogFooter } from "../components/dialog.tsx";
import { ClientSettings } from "./client-settings.tsx";

interface SecretOnceProps {
  readonly open: boolean;
  readonly title: string;
  readonly made: { readonly key: Key; readonly secret: string };
  readonly onDone: () => void;
}

/** Shows the secret of a key, which the server returns only once, and the settings of clients. */
export function SecretOnce({ open, title, made: { key, secret }, onDone }: SecretOnceProps) {
  const { data: models = [] } = useQuery(modelsQuery);
  const usable = models.filter((each) => makes(each, Modality.TEXT) && mayUse(key, each.id));
  const model = (usable.find((each) => !makes(each, Modality.IMAGE)) ?? usable[0])?.id;
  return (
    <Dialog
      open={open}
      wide
      sticky
      title={title}
      description="Copy the key now. It is shown only once."
      onClose={onDone}
    >
      <div className="flex flex-wrap items-center gap-3 rounded-lg border border-line bg-sunken p-3">
        <code data-testid="secret" className="min-w-0 flex-1 basis-60 font-mono text-sm break-all select-all">
          {secret}
        </code>
        <CopyButton text={secret} what="the key" look="primary" />
      </div>
      {model !== undefined && (
        <ClientSettings use={{ secret, model, models: usable.map(({ id }) => id), origin: location.origin }} />
      )}
      <DialogFooter>
        <Button onClick={onDone}>I have saved it</Button>
      </DialogFooter>
    </Dialog>
  );
}
