import type { Key } from "../../gen/parley/console/v1/key_pb.js";

/** Actions on a key. */
export type KeyAct = "edit" | "rotate" | "transfer" | "revoke";

/** Props of a dialog for one key. */
export interface KeyDialogProps {
  readonly target: Key;
  readonly open: boolean;
  readonly onClose: () => void;
}
