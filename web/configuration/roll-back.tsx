import type {
  ChangeConfigurationResponse,
  ConfigurationVersion,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { configuration } from "../api/configuration.ts";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Conflict } from "./conflict.tsx";
import { useChange } from "./use-change.ts";

interface RollBackProps {
  readonly target: ConfigurationVersion;
  readonly latestVersion: bigint;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onSaved: (response: ChangeConfigurationResponse) => void;
}

/** Dialog that makes a new version with the document of an earlier one. */
export function RollBack({ target: { version }, latestVersion, open, onClose, onSaved }: RollBackProps) {
  const change = useChange({
    version: latestVersion,
    send: (expectedVersion) => configuration.rollBack({ expectedVersion, version }),
    onSaved,
  });
  return (
    <ConfirmDialog
      open={open}
      title={`Roll back to version ${version}?`}
      description="All stored providers, models, aliases and settings become as they were in that version, as a new version. API keys stay as they are: a provider that has been removed since needs its API key again."
      action="Roll back"
      doing="Rolling back …"
      act={{
        error: change.isConflict ? null : change.error,
        isPending: change.isPending,
        mutate: () => change.mutate(),
      }}
      onClose={onClose}
    >
      {change.isConflict && <Conflict action="Roll back" />}
    </ConfirmDialog>
  );
}
