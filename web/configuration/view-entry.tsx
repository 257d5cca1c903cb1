import type { NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { Code } from "./code.tsx";
import { describeOrigin, kindOf } from "./entry-words.ts";

interface ViewEntryProps {
  readonly target: NamedEntry;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Dialog with the text of an entry that cannot be changed here. */
export default function ViewEntry({ target, open, onClose }: ViewEntryProps) {
  return (
    <Dialog
      open={open}
      wide
      title={`${kindOf(target.section)} ${target.name}`}
      description={describeOrigin(target) || "The configuration file does not allow changes here."}
      onClose={onClose}
    >
      <div className="space-y-5">
        <Code label="Entry" text={target.entry} />
        <DialogActions close="Close" />
      </div>
    </Dialog>
  );
}
