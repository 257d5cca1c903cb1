import { Alert } from "../components/alert.tsx";
import { Code } from "./code.tsx";

interface ConflictProps {
  /** The entry's text now; undefined if it has not changed, or if there is no one entry. Empty: it has been removed. */
  readonly now?: string | undefined;
  /** Label of the button that sends the change again. */
  readonly action: string;
}

/** Says that somebody else has changed the configuration since the dialog opened, and what to do. */
export function Conflict({ now, action }: ConflictProps) {
  return (
    <div className="space-y-3">
      <Alert>
        The configuration was changed by somebody else since you opened this. It is loaded again, and nothing of yours
        is saved yet.{" "}
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
