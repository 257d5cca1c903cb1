import type {
  ChangeConfigurationResponse,
  ListEntriesResponse,
  NamedEntry,
} from "../../gen/parley/console/v1/configuration_pb.js";

/** Actions on an entry. */
export type EntryAct = "edit" | "credential" | "remove";

/** Props of a dialog that changes the configuration. */
export interface ChangeDialogProps {
  /** The configuration as it is now. */
  readonly list: ListEntriesResponse;
  readonly open: boolean;
  readonly onClose: () => void;
  /** Called after a change, in place of `onClose`. */
  readonly onSaved: (response: ChangeConfigurationResponse) => void;
}

/** Props of a dialog for one entry. */
export interface EntryDialogProps extends ChangeDialogProps {
  /** The entry as it was when the dialog opened. */
  readonly target: NamedEntry;
}
