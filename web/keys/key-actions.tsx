import { ArrowRightLeft, type LucideIcon, Pencil, RefreshCw, Trash2, Users } from "lucide-react";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { useOwners } from "../api/owners.ts";
import type { RowAction } from "../components/row-actions.tsx";
import { endUsersPath } from "../paths.ts";
import type { KeyAct } from "./dialog-props.ts";

// Loaded when first opened, so that the page appears sooner.
const ActDialog = lazy(() => import("./act-dialog.tsx"));

interface KeyActions {
  /** The actions that the signed-in account may take on a key, and links. */
  readonly actionsOn: (key: Key) => readonly RowAction[];
  /** The dialog of the action that was chosen last. */
  readonly dialog: ReactNode;
}

/** Returns the actions on keys, with their dialogs. */
export function useKeyActions(): KeyActions {
  const [act, setAct] = useState<{ readonly what: KeyAct; readonly target: Key; readonly isOpen: boolean }>();
  const writable = new Set(useOwners().flatMap(({ id, isWritable }) => (isWritable ? [id] : [])));
  return {
    actionsOn(key) {
      const { attributionLimits: limits, name } = key;
      const spending: RowAction = {
        verb: "Spending of end users",
        name: `Spending of the end users of ${name}`,
        Icon: Users,
        href: endUsersPath(key.id),
      };
      const to = (verb: string, Icon: LucideIcon, what: KeyAct): RowAction => {
        return { verb, Icon, onClick: () => setAct({ what, target: key, isOpen: true }) };
      };
      const mayChange = writable.has(key.accountId) && key.state === KeyState.ACTIVE;
      return [
        (limits?.endUserBudgetMicroUsd ?? limits?.sessionBudgetMicroUsd) === undefined ? [] : spending,
        mayChange ? to("Edit", Pencil, "edit") : [],
        mayChange && key.replacedBy === "" ? to("Rotate", RefreshCw, "rotate") : [],
        mayChange && writable.size > 1 ? to("Transfer", ArrowRightLeft, "transfer") : [],
        mayChange ? to("Revoke", Trash2, "revoke") : [],
      ].flat();
    },
    dialog: act && (
      <Suspense>
        {/* A new instance per key, so that no state of the previous key remains. */}
        <ActDialog
          key={`${act.what} ${act.target.id}`}
          act={act.what}
          target={act.target}
          open={act.isOpen}
          onClose={() => setAct({ ...act, isOpen: false })}
        />
      </Suspense>
    ),
  };
}
