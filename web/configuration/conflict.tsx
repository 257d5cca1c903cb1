import { Alert } from "../components/alert.tsx";
import { Code } from "./code.tsx";

interface ConflictProps {
  /**
   * Current text of the entry; empty if it was removed. Undefined if it has not changed, or if the change is not of a
   * single entry.
   */
  readonly now?: string | undefined;
  /** Label of the button that sends the change again. */
  readonly action: string;
}

/** Says that somebody else has changed the configuration since the dialog opened, and what to do. */
export function Conflict({ now, action }: ConflictProps) {
  return (
    <div className="space-y-3">
      <Alert>
        Somebody else has changed the configuration since you opened this dialog. The latest version is loaded; your
        change is not saved yet.{" "}
        {now === undefined
          ? `Check the list, then choose “${action}” again.`
          : now === ""
            ? `This entry has been removed; “${action}” adds it again.`
            : `This entry has changed too, see below; “${action}” replaces it.`}
      </Alert>
      {now !== undefined && now !== "" && <Code label="The entry now" text={now} />}
    </div>
  );
}
