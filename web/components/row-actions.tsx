import { lazy, Suspense, useState } from "react";
import { Ellipsis, type LucideIcon } from "lucide-react";
import { Link } from "wouter";
import { IconButton } from "./icon-button.tsx";
import { ICON_BUTTON } from "./table.tsx";
import { useHasIcons } from "./media.ts";

const ActionMenu = lazy(() => import("./action-menu.tsx"));

/** An action on the object of a row, or a page about it. */
export type RowAction = {
  /** Without the name of the object: `Edit`. */
  readonly verb: string;
  /** Accessible name, with the name of the object. Default: `Edit NAME`. */
  readonly name?: string;
  readonly Icon: LucideIcon;
} & ({ readonly onClick: () => void } | { readonly href: string });

export interface RowActionsProps {
  /** Name of the object. */
  readonly of: string;
  readonly actions: readonly RowAction[];
}

/** Accessible name of the button of a menu. */
export function menuName(of: string): string {
  return `Actions on ${of}`;
}

/** Classes of the button of a menu. */
export const MENU_BUTTON = `${ICON_BUTTON} -mx-1`;

/** Actions of a table's row: icons on wide screens, else a menu. */
export function RowActions({ of, actions }: RowActionsProps) {
  const hasIcons = useHasIcons();
  if (actions.length === 0) return null;
  if (!hasIcons) return <MenuOnDemand of={of} actions={actions} />;
  return (
    <span className="-mx-1.5 flex" role="group" aria-label={of}>
      {actions.map(({ verb, name = `${verb} ${of}`, Icon, ...action }) =>
        "href" in action ? (
          <Link key={verb} href={action.href} aria-label={name} title={name} className={ICON_BUTTON}>
            <Icon aria-hidden className="size-4" />
          </Link>
        ) : (
          <IconButton key={verb} name={name} Icon={Icon} onClick={action.onClick} />
        ),
      )}
    </span>
  );
}

/** Button of the menu, whose code is loaded by the first click. */
function MenuOnDemand(props: RowActionsProps) {
  const [isAsked, setAsked] = useState(false);
  const button = (
    <button
      type="button"
      aria-label={menuName(props.of)}
      aria-haspopup="menu"
      aria-expanded={false}
      className={MENU_BUTTON}
      onClick={() => setAsked(true)}
    >
      <Ellipsis aria-hidden className="size-4.5" />
    </button>
  );
  if (!isAsked) return button;
  return (
    <Suspense fallback={button}>
      <ActionMenu {...props} />
    </Suspense>
  );
}

/** Header of the column of actions, which is as narrow as a menu's button on narrow screens. */
export function ActionsHead() {
  return <span className="max-wide:sr-only">Actions</span>;
}
