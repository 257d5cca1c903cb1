import { lazy } from "react";
import type { KeyAct, KeyDialogProps } from "./dialog-props.ts";

const DIALOGS = {
  edit: lazy(() => import("./edit-key.tsx")),
  transfer: lazy(() => import("./transfer-key.tsx")),
  rotate: lazy(() => import("./rotate-key.tsx")),
  revoke: lazy(() => import("./revoke-key.tsx")),
} as const satisfies Record<KeyAct, unknown>;

/** Dialog of an action on a key. */
export default function ActDialog({ act, ...props }: KeyDialogProps & { readonly act: KeyAct }) {
  const Dialog = DIALOGS[act];
  return <Dialog {...props} />;
}
