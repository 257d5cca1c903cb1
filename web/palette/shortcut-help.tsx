import { useState } from "react";
import { useAccount, usePermissions } from "../api/session.ts";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { Kbd } from "../components/kbd.tsx";
import { Switch } from "../components/switch.tsx";
import { placesOf, REFERENCE } from "../layout/places.ts";
import { COMMAND_KEY, readSingleKeys, storeSingleKeys } from "../layout/shortcuts.ts";

interface ShortcutHelpProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Dialog with all keyboard shortcuts, where those of single keys can be turned off. */
export default function ShortcutHelp({ open, onClose }: ShortcutHelpProps) {
  const account = useAccount();
  const permissions = usePermissions();
  const [isOn, setOn] = useState(readSingleKeys);
  const places = [...placesOf(account, permissions), REFERENCE].map(
    ({ name, letter }) => [`Go to ${name}`, ["g", letter]] as const,
  );
  return (
    <Dialog open={open} title="Keyboard shortcuts" onClose={onClose}>
      <dl className="divide-y divide-line text-sm">
        {[...GENERAL, ...places].map(([name, keys]) => (
          <div key={name} className="flex items-center justify-between gap-4 py-2">
            <dt>{name}</dt>
            <dd className="flex shrink-0 items-center gap-1">
              {keys.map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <div className="mt-4 -ml-2">
        <Switch
          on={isOn}
          onChange={(on) => {
            storeSingleKeys(on);
            setOn(on);
          }}
        >
          Shortcuts of single keys (?, /, g)
        </Switch>
      </div>
      <DialogActions close="Close" />
    </Dialog>
  );
}

const GENERAL: readonly (readonly [name: string, keys: readonly string[]])[] = [
  ["Search pages, keys, models and actions", [COMMAND_KEY, "K"]],
  ["Send the message of the playground", [COMMAND_KEY, "Enter"]],
  ["Go to the latest notification", ["F6"]],
  ["Search this page", ["/"]],
  ["Show these shortcuts", ["?"]],
];
