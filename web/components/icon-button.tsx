import type { LucideIcon } from "lucide-react";
import { ICON_BUTTON } from "./table.tsx";

interface IconButtonProps {
  /** Accessible name: the action and the name of its object. */
  readonly name: string;
  readonly Icon: LucideIcon;
  readonly onClick: () => void;
}

/** An action of a table's row. */
export function IconButton({ name, Icon, onClick }: IconButtonProps) {
  return (
    <button type="button" aria-label={name} title={name} className={ICON_BUTTON} onClick={onClick}>
      <Icon aria-hidden className="size-4" />
    </button>
  );
}
