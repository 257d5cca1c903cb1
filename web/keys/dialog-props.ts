import type { Key } from "../../gen/parley/console/v1/key_pb.js";

/** What can be done with a key. */
export type KeyAct = "edit" | "rotate" | "revoke";

/** A dialog about one key. */
export interface KeyDialogProps {
  readonly target: Key;
  readonly open: boolean;
  readonly onClose: () => void;
}
